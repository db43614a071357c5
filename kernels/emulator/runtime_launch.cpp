// Launches: the device's limits, then the stream's order.
#include <fmt/format.h>

#include "kernels/base/error.h"
#include "kernels/cuda/runtime_extras.h"
#include "kernels/emulator/grid.h"
#include "kernels/emulator/streams.h"
#include "kernels/emulator/test_control.h"

namespace convoy::emulator {
namespace {

constexpr unsigned kMostBlockZ = 64;
constexpr unsigned kMostGridX = 0x7fffffff;
constexpr unsigned kMostGridYZ = 65535;

bool block_fits(const dim3& block) {
  return block.count() >= 1 && block.count() <= kMostThreadsPerBlock && block.z <= kMostBlockZ;
}

bool grid_fits(const dim3& grid) {
  return grid.count() >= 1 && grid.x <= kMostGridX && grid.y <= kMostGridYZ &&
         grid.z <= kMostGridYZ;
}

cudaError_t check_launch(const LaunchConfig& config) {
  if (!block_fits(config.block) || !grid_fits(config.grid)) return cudaErrorInvalidConfiguration;
  if (config.shared_bytes > kMostSharedBytes) return cudaErrorInvalidValue;
  return must_fail(FailingCall::launch) ? cudaErrorLaunchOutOfResources : cudaSuccess;
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
