#include "kernels/cuda/context.h"

#include <numeric>
#include <thread>

#include "kernels/backends.h"
#include "kernels/cuda/check.h"
#include "kernels/cuda/stream.h"
#include "kernels/emulator/test_control.h"
#include "kernels/kernel_list.h"
#include "tests/support/expect_error.h"

namespace convoy::emulator {
namespace {

using convoy::testing::check_error;
using convoy::testing::expect_error;

}  // namespace

TEST_CASE("gpu context: devices that are there and one that is not") {
  for (const Device& device : {Device("emu:0"), Device("emu:1")}) {
    DeviceContext& on = context(device);
    CHECK(on.device() == device);
    CHECK(on.describe() == "emulated CUDA device, 4 SMs, sm_90");
    CHECK(on.default_stream().device() == device);
  }
  check_error([] { context("emu:64"); }, ErrorKind::usage,
              "device: emu:64 is not here: there are 64");
}

TEST_CASE("gpu context: copies in, inside, out, and to another device") {
  DeviceContext& on = context("emu:0");
  DeviceContext& other = context("emu:1");
  Stream& stream = on.default_stream();
  std::vector<int> source(1000), target(1000);
  std::iota(source.begin(), source.end(), 1);
  const std::vector<int> expected = source;
  const std::size_t bytes = source.size() * sizeof(int);
  MemoryPool::Block a = on.memory().allocate(bytes, &stream);
  MemoryPool::Block b = on.memory().allocate(bytes, &stream);
  MemoryPool::Block c = other.memory().allocate(bytes, &other.default_stream());
  on.copy_in(stream, a.data(), source.data(), bytes);
  std::fill(source.begin(), source.end(), 0);  // the source may be reused at once
  on.copy(stream, b.data(), a.data(), bytes);
  on.copy_out(stream, target.data(), b.data(), bytes);
  CHECK(target == expected);
  other.default_stream().wait(stream.record());
  other.copy(other.default_stream(), c.data(), b.data(), bytes);
  std::fill(target.begin(), target.end(), 0);
  other.copy_out(other.default_stream(), target.data(), c.data(), bytes);
  CHECK(target == expected);
}

}  // namespace convoy::emulator
