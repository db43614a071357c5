// Memory that backward gives back: at once where it can, all of it in the end.
#include "engine/autograd/backward.h"
#include "engine/autograd/grad_mode.h"
#include "engine/ops/ops.h"
#include "engine/tensor/random.h"
#include "kernels/base/context.h"
#include "kernels/kernel_list.h"
#include "models/models.h"
#include "tests/support/catch.h"
#include "tests/support/expect_error.h"

namespace convoy::testing {
namespace {

std::size_t in_use(const char* device) {
  DeviceContext& place = context(device);
  place.default_stream().synchronize();
  return place.memory().statistics().in_use;
}

Tensor big(const char* device = "ref:0") {  // 1 MiB
  return Tensor::ones({512, 512}, {DType::f32, device});
}

constexpr std::size_t kMegabyte = std::size_t{1} << 20;

}  // namespace

TEST_CASE("backward frees the graph while its root still lives") {
  Tensor x = big();
  x.set_requires_grad();
  const std::size_t before = in_use("ref:0");
  Tensor y = x;
  for (int i = 0; i < 8; ++i) y = square(y);
  const Tensor loss = sum(y);
  y = Tensor();
  CHECK(in_use("ref:0") >= before + 7 * kMegabyte);
  loss.backward();
  CHECK(in_use("ref:0") < before + 2 * kMegabyte);  // the gradient of x, and the loss
}

TEST_CASE("backward frees layer by layer") {
  Tensor x = big();
  x.set_requires_grad();
  Tensor y = x;
  for (int i = 0; i < 16; ++i) y = square(y);
  const Tensor loss = sum(y);
  y = Tensor();
  const std::size_t before = in_use("ref:0");
  context("ref:0").memory().reset_peak();
  loss.backward();
  // Gradients replace saved values: not 16 of the ones on top of 16 of the others.
  CHECK(context("ref:0").memory().statistics().peak_in_use < before + 4 * kMegabyte);
}

TEST_CASE("graph_only: the values go, the gradients stay") {
  const auto gradient_of = [](bool without_values) {
    Tensor x = Tensor::full({512, 512}, 0.3, {DType::f32, "ref:0"});
    x.set_requires_grad();
    Tensor y = linear(x, x);  // keeps x for backward, not y
    const Tensor dy = Tensor::full({512, 512}, 0.7, {DType::f32, "ref:0"});
    const std::size_t before = in_use("ref:0");
    const Tensor root = without_values ? y.graph_only() : y;
    y = Tensor();
    CHECK(in_use("ref:0") == before - (without_values ? kMegabyte : 0));
    CHECK(root.shape() == dy.shape());
    CHECK(to_string(root.device()) == "ref:0");
    CHECK(root.requires_grad());
    CHECK(root.is_allocated() != without_values);
    backward({root}, {dy});
    return x.grad().to_vector<float>();
  };
  CHECK(gradient_of(true) == gradient_of(false));
}

TEST_CASE("graph_only: a scalar root, a leaf, and a reader of what is gone") {
  Tensor x = Tensor::full({2, 3}, 3);
  x.set_requires_grad();
  CHECK(x.graph_only().impl() == x.impl());
  const Tensor loss = sum(square(x)).graph_only();
  expect_error(ErrorKind::usage, {"f32 () on cpu:0 has no values", "graph_only"},
               [&] { loss.item(); });
  expect_error(ErrorKind::usage, {"has no values"}, [&] { loss.to("ref:0"); });
  expect_error(ErrorKind::usage, {"has no values"}, [&] { loss + loss; });
  loss.backward();
  CHECK(x.grad().to_vector<float>() == std::vector<float>(6, 6));
}

TEST_CASE("without a graph a chain keeps two values") {
  const Tensor x = big();
  const std::size_t before = in_use("ref:0");
  context("ref:0").memory().reset_peak();
  NoGradScope no_grad;
  Tensor y = x;
  for (int i = 0; i < 16; ++i) y = square(y);
  CHECK(context("ref:0").memory().statistics().peak_in_use <= before + 3 * kMegabyte);
}

TEST_CASE("nothing leaks: training, failures, unused graphs, kept graphs, other devices") {
  big("ref:1");
  const std::size_t before = in_use("ref:0"), before_there = in_use("ref:1");
  {
    Tensor x = big();
    x.set_requires_grad();
    const Tensor unused = square(x);
    const Tensor over = sum(square(x.to(Device("ref:1"))));
    over.backward();
    const Tensor kept = sum(square(x));
    backward({kept}, {}, {.postponed = nullptr, .retain_graph = true});
    const Tensor failing = sum(square(x));
    x.fill_(2);
    CHECK_THROWS(failing.backward());
    PostponedWeights never_run;
    Tensor w = Tensor::ones({4, 512}, {DType::f32, "ref:0"});
    w.set_requires_grad();
    backward({sum(linear(x, w))}, {}, {.postponed = &never_run});
  }
  CHECK(in_use("ref:0") == before);
  CHECK(in_use("ref:1") == before_there);
}

TEST_CASE("nothing leaks from a network") {
  const std::size_t before = in_use("ref:0");
  {
    auto network = make_model("resnet18", 10);
    network->to(Device("ref:0"));
    const Tensor x = Tensor::zeros({2, 3, 32, 32}, {DType::f32, "ref:0"});
    const Tensor labels = Tensor::from(std::vector<std::int64_t>{1, 2}, {2}, "ref:0");
    cross_entropy(network->forward(x), labels).backward();
    const std::size_t after_one = in_use("ref:0");
    cross_entropy(network->forward(x), labels).backward();
    CHECK(in_use("ref:0") == after_one);
  }
  CHECK(in_use("ref:0") == before);
}

namespace {

// A convolution behind batch norm and ReLU.
struct NormedConvolution {
  // As a convolution before it would leave it; 1 MiB.
  Tensor x = Tensor::randn({4, 16, 64, 64}).with_layout(layouts().x);
  Tensor gamma = Tensor::ones({16}), beta = Tensor::zeros({16});
  Tensor weight = Tensor::randn({16, 16, 3, 3});

  static Conv2dLayouts layouts() {
    Conv2dShape shape{4, 16, 64, 64, 16, 3, 3};
    shape.padding_h = shape.padding_w = 1;
    return context("cpu:0").kernels().conv2d_layouts(shape, DType::f32);
  }
  Tensor normed() {
    for (Tensor* leaf : {&x, &gamma, &weight}) leaf->set_requires_grad();
    return batch_norm(x, gamma, beta, Tensor::zeros({16}), Tensor::ones({16}), {.relu = true});
  }
  Tensor convolved(const Tensor& y) { return conv2d(y, weight, Tensor(), {.padding = {1, 1}}); }
};

}  // namespace

TEST_CASE("what batch norm gives is made again for a convolution's gradient, bit for bit") {
  // The gradient of the weight through a convolution that keeps y, and through one that does not:
  // values written to y by hand are not what batch norm would make again.
  const auto gradient = [](bool written) {
    manual_seed(7);
    NormedConvolution work;
    Tensor y = work.normed();
    if (written) {
      NoGradScope no_grad;
      y.copy_(y.clone());
    }
    const std::size_t before = in_use("cpu:0");
    const Tensor z = work.convolved(y);
    y = Tensor();
    const std::size_t kept = in_use("cpu:0") + kMegabyte - before;  // of z and y, less y
    CHECK(kept >= (written ? 2 : 1) * kMegabyte);
    CHECK(kept < (written ? 2 : 1) * kMegabyte + kMegabyte / 2);
    sum(z).backward();
    return work.weight.grad().to_vector<float>();
  };
  CHECK(gradient(true) == gradient(false));
}

TEST_CASE("what values are made of must be as it was when they are made again") {
  NormedConvolution work;
  const Tensor z = work.convolved(work.normed());
  {
    NoGradScope no_grad;
    work.beta.fill_(1);
  }
  expect_error(ErrorKind::usage, {"batch_norm", "overwritten since"}, [&] { sum(z).backward(); });
}

}  // namespace convoy::testing
