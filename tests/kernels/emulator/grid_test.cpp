#include <numeric>
#include <vector>

#include "kernels/emulator/launch.h"
#include "tests/kernels/emulator/machine_support.h"

namespace convoy::emulator {
namespace {

template <class T>
__global__ void named_kernel(T*) {}

TEST_CASE("every thread of every block runs once", "[emulator]") {
  for (const LaunchConfig& config :
       {LaunchConfig{}, LaunchConfig{.grid = 5, .block = 33},
        LaunchConfig{.grid = {3, 2, 4}, .block = {4, 3, 5}}, LaunchConfig{.block = {2, 8, 64}}}) {
    in_each_order([&] {
      std::vector<int> calls(config.grid.count() * config.block.count());
      run(config, [&] {
        const auto block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
        const auto thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
        ++calls[block * config.block.count() + thread];
      });
      CHECK(calls == std::vector<int>(calls.size(), 1));
    });
  }
}

TEST_CASE("kernels have names without being registered", "[emulator]") {
  const auto name = [](auto* kernel) { return kernel_name(reinterpret_cast<void*>(kernel)); };
  CHECK(name(named_kernel<float>) == "convoy::emulator::named_kernel<float>");
  CHECK(name(named_kernel<std::vector<int>>) ==
        "convoy::emulator::named_kernel<std::vector<int, std::allocator<int> > >");
}

}  // namespace
}  // namespace convoy::emulator
