// Runs kernels on the machine directly, without streams.
#pragma once

#include <functional>
#include <initializer_list>
#include <string>
#include <utility>

#include "kernels/cuda/platform.h"
#include "kernels/emulator/grid.h"
#include "kernels/emulator/machine.h"
#include "tests/support/catch.h"

namespace convoy::emulator {

using namespace machine;  // NOLINT(google-build-using-namespace)

/// Calls `thread` in every thread of the grid.
inline void run(const LaunchConfig& config, std::function<void()> thread,
                const std::string& kernel = "test_kernel") {
  run_grid({config, 0, kernel, std::move(thread)});
}

/// Calls use(name) under each order of threads and blocks.
template <class Use>
void in_each_order(Use use) {
  for (const auto& [order, name] : {std::pair{Order::forward, "forward"},
                                    {Order::reverse, "reverse"},
                                    {Order::random, "random"}}) {
    MachineOptions options = machine_options();
    options.order = order;
    options.seed = 7;
    const MachineOptionsScope scope(options);
    INFO("order " << name);
    use();
  }
}

/// The text of the DeviceFault that the grid raises; its number must be `error`.
inline std::string fault_of(const LaunchConfig& config, std::function<void()> thread,
                            cudaError_t error) {
  try {
    run(config, std::move(thread));
  } catch (const DeviceFault& fault) {
    CHECK(fault.error() == error);
    return fault.what();
  }
  FAIL("no fault");
  return {};
}

}  // namespace convoy::emulator
