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

}  // namespace

void queue_grid(GridWork work) {
  work.device = current_device();
  const std::string what = describe(work);
  const cudaStream_t stream = work.config.stream;
  cudaError_t error = check_launch(work.config);
  if (error == cudaSuccess) {
    auto grid = std::make_shared<const GridWork>(std::move(work));
    error = queue_work(stream, {[grid] { run_grid(*grid); }}, true);
  }
  if (note(error) == cudaSuccess) return;
  const std::string detail = failure_detail();
  CONVOY_FAIL(internal, "CUDA: {}: {}: {}{}{}", cudaGetErrorName(error), cudaGetErrorString(error),
              what, detail.empty() ? "" : ": ", detail);
}

}  // namespace convoy::emulator
