// Launches: the machine's limits, then the stream's order.
#include <fmt/format.h>

#include "kernels/base/error.h"
#include "kernels/cuda/runtime_extras.h"
#include "kernels/emulator/devices.h"
#include "kernels/emulator/machine.h"
#include "kernels/emulator/streams.h"
#include "kernels/emulator/test_control.h"

namespace convoy::emulator {
namespace {

cudaError_t check_launch(const LaunchConfig& config) {
  std::string refusal = machine::launch_refusal(config);
  if (refusal.empty()) {
    return must_fail(FailingCall::launch) ? cudaErrorLaunchOutOfResources : cudaSuccess;
  }
  const bool memory = config.shared_bytes > machine::kMaxSharedBytes;
  return fail(memory ? cudaErrorInvalidValue : cudaErrorInvalidConfiguration, std::move(refusal));
}

std::string describe(const GridWork& work) {
  const LaunchConfig& how = work.config;
  return fmt::format("launch of {}: grid ({}, {}, {}), block ({}, {}, {}), {} bytes shared",
                     work.kernel, how.grid.x, how.grid.y, how.grid.z, how.block.x, how.block.y,
                     how.block.z, how.shared_bytes);
}

// Memory may have gone between the launch and its turn in the stream.
void run_if_memory_lives(const GridWork& work) {
  const std::string problem = pointer_problem(work.device, work.pointers);
  if (problem.empty()) return run_grid(work);
  throw DeviceFault(cudaErrorIllegalAddress, fmt::format("{}: it got {}", work.kernel, problem));
}

cudaError_t check_pointers(const GridWork& work) {
  std::string problem = pointer_problem(work.device, work.pointers);
  return problem.empty() ? cudaSuccess : fail(cudaErrorIllegalAddress, std::move(problem));
}

}  // namespace

void queue_grid(GridWork work) {
  work.device = current_device();
  const std::string what = describe(work);
  const cudaStream_t stream = work.config.stream;
  cudaError_t error = check_launch(work.config);
  if (error == cudaSuccess) error = check_pointers(work);
  if (error == cudaSuccess) {
    auto grid = std::make_shared<const GridWork>(std::move(work));
    error = queue_work(stream, {[grid] { run_if_memory_lives(*grid); }}, true);
  }
  if (note(error) == cudaSuccess) return;
  const std::string detail = failure_detail();
  CONVOY_FAIL(internal, "CUDA: {}: {}: {}{}{}", cudaGetErrorName(error), cudaGetErrorString(error),
              what, detail.empty() ? "" : ": ", detail);
}

}  // namespace convoy::emulator
