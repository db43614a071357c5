// Batch norm: which statistics normalise, and what the running ones become, against closed forms.
#include <cmath>

#include "engine/autograd/backward.h"
#include "engine/autograd/grad_mode.h"
#include "engine/nn/layers.h"
#include "engine/ops/ops.h"
#include "kernels/base/context.h"
#include "kernels/base/error.h"
#include "kernels/kernel_list.h"
#include "tests/engine/gradient_case.h"
#include "tests/support/catch.h"
#include "tests/support/expect_error.h"
#include "tests/support/formula.h"

namespace convoy::testing {
namespace {

using Values = std::vector<double>;

bool close(double actual, double expected, double tolerance = 1e-12) {
  INFO(actual << ", expected " << expected);
  CHECK(std::abs(actual - expected) <= tolerance);
  return true;
}

// One channel; what it has seen so far.
struct Channel {
  explicit Channel(BatchNormMode mode, DType dtype = DType::f64, const char* device = "ref:0")
      : norm(1), options{dtype, device} {
    norm.to(options.device);
    norm.to(options.dtype);
    norm.set_mode(mode);
  }
  Values feed(const Values& values) {
    return norm(Tensor::from(values, {std::ssize(values), 1, 1, 1}, options)).to_vector<double>();
  }
  void check(double mean, double var) {
    const double tolerance = options.dtype == DType::f64 ? 1e-12 : 1e-6;
    close(norm.running_mean.item(), mean, tolerance);
    close(norm.running_var.item(), var, tolerance);
  }
  BatchNorm2d norm;
  TensorOptions options;
};

}  // namespace

TEST_CASE("batch norm: two micro-batches") {
  const Values first{0, 1, 2, 3}, second{4, 5, 6, 7};
  for (auto [dtype, device] : {std::pair{DType::f64, "ref:0"}, {DType::f32, "cpu:0"}}) {
    INFO(device);
    Channel micro(BatchNormMode::micro, dtype, device);
    const double y = -1.5 / std::sqrt(1.25 + 1e-5);  // -1.341635
    close(micro.feed(first)[0], y, 1e-6);
    micro.check(0.15, 0.9 + 0.1 * 5 / 3);
    close(micro.feed(second)[0], y, 1e-6);
    micro.check(0.685, 1.126666666666666667);
    CHECK(micro.norm.num_batches_tracked == 2);

    Channel deferred(BatchNormMode::deferred, dtype, device);
    close(deferred.feed(first)[0], y, 1e-6);
    close(deferred.feed(second)[0], y, 1e-6);
    deferred.check(0, 1);
    deferred.norm.commit();
    deferred.check(0.35, 1.5);
    CHECK(deferred.norm.num_batches_tracked == 1);
    deferred.norm.commit();  // nothing was collected since
    deferred.check(0.35, 1.5);
    CHECK(deferred.norm.num_batches_tracked == 1);
  }
}

TEST_CASE("batch norm: one micro-batch is the same in both modes") {
  for (BatchNormMode mode : {BatchNormMode::micro, BatchNormMode::deferred}) {
    Channel channel(mode);
    close(channel.feed({0, 1, 2, 3, 4, 5, 6, 7})[0], -3.5 / std::sqrt(5.25 + 1e-5));  // -1.527524
    channel.norm.commit();
    channel.check(0.35, 1.5);
  }
}

TEST_CASE("batch norm: a short batch") {
  Channel micro(BatchNormMode::micro), deferred(BatchNormMode::deferred);
  for (const Values& part : {Values{0, 1, 2}, Values{3, 4}}) {
    micro.feed(part);
    deferred.feed(part);
  }
  micro.check(0.44, 0.95);
  deferred.norm.commit();
  deferred.check(0.2, 1.15);
}

TEST_CASE("batch norm: what a batch has collected does not leak into the next") {
  Channel channel(BatchNormMode::deferred);
  channel.feed({0, 1, 2, 3});
  channel.feed({4, 5, 6, 7});
  channel.norm.commit();
  channel.feed({1, 3});
  channel.norm.commit();
  channel.check(0.9 * 0.35 + 0.1 * 2, 0.9 * 1.5 + 0.1 * 2);
}

TEST_CASE("batch norm: frozen and evaluation use the running values and leave them") {
  for (bool evaluation : {false, true}) {
    Channel channel(evaluation ? BatchNormMode::micro : BatchNormMode::frozen);
    if (evaluation) channel.norm.eval();
    channel.norm.running_mean.fill_(2);
    channel.norm.running_var.fill_(4);
    const Values y = channel.feed({0, 8});
    close(y[0], -2 / std::sqrt(4 + 1e-5));
    close(y[1], 6 / std::sqrt(4 + 1e-5));
    channel.check(2, 4);
    CHECK(channel.norm.num_batches_tracked == 0);
  }
}

TEST_CASE("batch norm: a forward that runs once more changes nothing") {
  Channel channel(BatchNormMode::micro);
  channel.norm.set_update_running(false);
  close(channel.feed({0, 1, 2, 3})[0], -1.5 / std::sqrt(1.25 + 1e-5));
  channel.check(0, 1);
  CHECK(channel.norm.num_batches_tracked == 0);
  channel.norm.set_mode(BatchNormMode::deferred);
  channel.feed({0, 1, 2, 3});
  channel.norm.commit();
  channel.check(0, 1);
}

TEST_CASE("batch norm: large means do not cancel") {
  Channel channel(BatchNormMode::micro);
  const Values y = channel.feed({1e8, 1e8 + 1, 1e8 + 2, 1e8 + 3});
  close(y[0], -1.5 / std::sqrt(1.25 + 1e-5), 1e-9);
  channel.check(1e7 + 0.15, 0.9 + 0.1 * 5 / 3);
}

TEST_CASE("batch norm: the frozen gradient uses the values of its own forward") {
  Channel channel(BatchNormMode::frozen);
  channel.norm.running_var.fill_(4);
  Tensor x = Tensor::from(Values{1, 2}, {2, 1, 1, 1}, channel.options);
  x.set_requires_grad();
  const Tensor y = sum(channel.norm(x));
  channel.norm.running_var.fill_(9);
  y.backward();
  close(x.grad().to_vector<double>()[0], 1 / std::sqrt(4 + 1e-5));
}

TEST_CASE("batch norm: weight, bias, residual and ReLU in this order") {
  const Tensor x = Tensor::from(Values{-1, 1, -1, 1}, {4, 1, 1, 1}, kOracle);
  const Tensor weight = Tensor::full({1}, 2, kOracle), bias = Tensor::full({1}, 0.5, kOracle);
  const Tensor residual = Tensor::from(Values{3, -9, 0, 0}, {4, 1, 1, 1}, kOracle);
  const Tensor y = batch_norm(x, weight, bias, Tensor::zeros({1}, kOracle),
                              Tensor::ones({1}, kOracle), {.epsilon = 0, .relu = true}, residual);
  CHECK(y.to_vector<double>() == Values{1.5, 0, 0, 2.5});
}

namespace {

// Gradient of x where y is overwritten, or not, between forward and backward. Channels of x lie
// side by side where the device likes that.
std::vector<float> gradient_of_x(const Device& device, bool overwrite) {
  const TensorOptions options{DType::f32, device};
  auto values = [&](const char* name, const Shape& shape) {
    return Tensor::from(signed_values(name, shape.count()), shape, options);
  };
  const Conv2dShape convolution{2, 8, 3, 3, 8, 1, 1};
  const LayoutId layout = context(device).kernels().conv2d_layouts(convolution, DType::f32).y;
  Tensor x = values("x", {2, 8, 3, 3}).with_layout(layout);
  x.set_requires_grad();
  Tensor y = batch_norm(x, values("weight", {8}), values("bias", {8}), Tensor::zeros({8}, options),
                        Tensor::ones({8}, options), {.relu = true});
  if (overwrite) {
    NoGradScope no_grad;
    y.zero_();
  }
  backward({y}, {values("dy", {2, 8, 3, 3})});
  return x.grad().to_vector<float>();
}

}  // namespace

TEST_CASE("batch norm: y is kept for backward unless the device keeps its ReLU in bits") {
  const std::vector<float> expected = gradient_of_x("ref:0", false);
  for (const char* device : {"cpu:0", "emu:0"}) {
    INFO(device);
    const std::vector<float> actual = gradient_of_x(device, false);
    REQUIRE(actual.size() == expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) close(actual[i], expected[i], 1e-5);
  }
  for (const char* device : {"cpu:0", "emu:0"}) {
    CHECK(gradient_of_x(device, true) == gradient_of_x(device, false));
  }
  expect_error(ErrorKind::usage, {"batch_norm", "overwritten since"},
               [] { gradient_of_x("ref:0", true); });
}

TEST_CASE("batch norm modules: two inputs and modes of a whole tree") {
  auto norm = std::make_shared<BatchNorm2d>(1, true, true);
  Sequential tree({std::make_shared<Relu>(), norm});
  set_batch_norm_mode(tree, BatchNormMode::deferred);
  CHECK(norm->mode() == BatchNormMode::deferred);
  const Tensor x = Tensor::from(std::vector<float>{0, 1, 2, 3}, {4, 1, 1, 1}, "cpu:0");
  norm->forward_all({x, x});
  commit_batch_norms(tree);
  close(norm->running_mean.item(), 0.15, 1e-6);
  CHECK_THROWS_AS(norm->forward(x), Error);
  CHECK_THROWS_AS(norm->forward_all({x}), Error);
  CHECK_THROWS_AS(norm->forward_all({x, Tensor()}), Error);
  CHECK_THROWS_AS(BatchNorm2d(0), Error);
}

}  // namespace convoy::testing
