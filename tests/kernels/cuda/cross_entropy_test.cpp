// Softmax cross-entropy on emulated GPUs, beside what all backends are held to.
#include "kernels/cuda/cross_entropy.h"

#include <cmath>

#include "tests/kernels/cuda/device_array.h"
#include "tests/support/expect_error.h"

namespace convoy::testing {

TEST_CASE("gpu cross_entropy: threads for short and long rows") {
  CHECK(CONVOY_GPU::cross_entropy_threads(1) == 64);
  CHECK(CONVOY_GPU::cross_entropy_threads(512) == 64);
  CHECK(CONVOY_GPU::cross_entropy_threads(513) == 256);
}

TEST_CASE("gpu cross_entropy: a label far out of range is not read past") {
  // Equal logits of four classes: the loss is log(4), the gradient 1/4 less the label's one.
  const DeviceArray<Bf16> logits(std::vector<Bf16>(8, as<Bf16>(3))), dlogits(8);
  const DeviceArray<float> loss(1);
  auto run = [&](std::int64_t label) {
    const DeviceArray<std::int64_t> labels(std::vector<std::int64_t>{2, label});
    gpu_kernels().softmax_cross_entropy(gpu_stream(), {2, 4, 0, 0.5}, logits.buffer(),
                                        labels.buffer(), loss.buffer(), dlogits.buffer());
    gpu_stream().synchronize();
  };
  expect_error(ErrorKind::data, {"label 1125899906842624 of row 1", "0..3"},
               [&] { run(std::int64_t{1} << 50); });
  run(0);
  CHECK(std::abs(loss.values()[0] - std::log(4.0)) < 1e-6);
  const double other = 0.125, own = -0.375;
  CHECK(dlogits.values() == std::vector<Bf16>{as<Bf16>(other), as<Bf16>(other), as<Bf16>(own),
                                              as<Bf16>(other), as<Bf16>(own), as<Bf16>(other),
                                              as<Bf16>(other), as<Bf16>(other)});
}

}  // namespace convoy::testing
