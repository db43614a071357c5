// Memory that backward gives back: at once where it can, all of it in the end.
#include "engine/autograd/backward.h"
#include "engine/autograd/grad_mode.h"
#include "engine/ops/ops.h"
#include "kernels/base/context.h"
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

}  // namespace convoy::testing
