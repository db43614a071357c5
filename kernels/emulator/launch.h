// Starting a kernel in the emulator: its arguments are copied into a closure.
#pragma once

#include <utility>

#include "kernels/emulator/grid.h"
#include "kernels/emulator/machine.h"

namespace convoy::emulator {

/// Queues `kernel`. `internal` if the device would refuse the launch.
template <class... Parameters, class... Arguments>
void launch(void (*kernel)(Parameters...), const LaunchConfig& config, Arguments... arguments) {
  GridWork work;
  work.config = config;
  work.kernel = machine::kernel_name(reinterpret_cast<const void*>(kernel));
  work.thread = [kernel, ... copies = static_cast<Parameters>(arguments)] { kernel(copies...); };
  queue_grid(std::move(work));
}

}  // namespace convoy::emulator
