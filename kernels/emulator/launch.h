// Starting a kernel in the emulator: its arguments are copied into a closure.
#pragma once

#include <utility>

#include "kernels/emulator/grid.h"
#include "kernels/emulator/machine.h"

namespace convoy::emulator {

// Not seen by the checks: on a GPU no thread reads what the host keeps for a launch. noipa: else
// gcc moves these reads to the caller.
#ifdef __clang__
#define CONVOY_UNSEEN
#else
#define CONVOY_UNSEEN [[gnu::no_sanitize_thread, gnu::noipa]]
#endif

template <class... Parameters>
CONVOY_UNSEEN void call(void (*const& kernel)(Parameters...), const Parameters&... copies) {
  kernel(copies...);
}

/// A launch of `kernel` with its arguments.
template <class... Parameters, class... Arguments>
GridWork grid_work(void (*kernel)(Parameters...), const LaunchConfig& config,
                   Arguments... arguments) {
  GridWork work;
  work.config = config;
  work.kernel = machine::kernel_name(reinterpret_cast<const void*>(kernel));
  (collect_pointers(static_cast<Parameters>(arguments), work.pointers), ...);
  work.thread = [kernel, ... copies = static_cast<Parameters>(arguments)] {
    call<Parameters...>(kernel, copies...);
  };
  return work;
}

/// Queues `kernel`. `internal` if the device would refuse the launch.
template <class... Parameters, class... Arguments>
void launch(void (*kernel)(Parameters...), const LaunchConfig& config, Arguments... arguments) {
  queue_grid(grid_work(kernel, config, arguments...));
}

}  // namespace convoy::emulator
