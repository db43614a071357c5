// Every check of a public op trips once, with a text that holds the values.
#include "engine/autograd/backward.h"
#include "engine/ops/ops.h"
#include "tests/support/catch.h"
#include "tests/support/expect_error.h"

namespace convoy::testing {
namespace {

using testing::expect_error;

Tensor make(const Shape& shape, DType dtype = DType::f32, const char* device = "ref:0") {
  return Tensor::zeros(shape, {dtype, device});
}

Tensor labels(const std::vector<std::int64_t>& values, const char* device = "ref:0") {
  return Tensor::from(values, {static_cast<std::int64_t>(values.size())}, device);
}

void usage(const std::vector<std::string_view>& parts, const std::function<void()>& body) {
  expect_error(ErrorKind::usage, parts, body);
}

}  // namespace

TEST_CASE("checks: operands are defined, on one device, of one floating type") {
  const Tensor x = make({2, 3}), other = make({2, 3}, DType::f32, "ref:1");
  usage({"add", "ref:0", "ref:1", ".to(device)"}, [&] { add(x, other); });
  usage({"add", "f32", "f64"}, [&] { add(x, make({2, 3}, DType::f64)); });
  usage({"relu", "i64 (2, 3) on ref:0"}, [&] { relu(make({2, 3}, DType::i64)); });
  usage({"undefined"}, [] { linear({}, make({2, 3})); });
  usage({"conv2d", "weight", "undefined"}, [] { conv2d(make({1, 1, 2, 2}), {}); });
  usage({"before it was given a value"}, [] { relu({}); });
  usage({"before it was given a value"}, [] { add(make({1}), {}); });
  usage({"mse_loss", "undefined"}, [&] { mse_loss(x, {}); });
}

TEST_CASE("checks: every op names both devices") {
  const Tensor here = make({1, 2, 4, 4}), there = make({2, 2, 1, 1}, DType::f32, "ref:1");
  const Tensor channels = make({2}), far = make({2}, DType::f32, "ref:1");
  usage({"conv2d", "ref:0", "ref:1"}, [&] { conv2d(here, there); });
  usage({"conv2d", "ref:0", "ref:1"}, [&] { conv2d(here, make({2, 2, 1, 1}), far); });
  usage({"linear", "ref:0", "ref:1"}, [&] {
    linear(make({1, 2}), make({3, 2}, DType::f32, "ref:1"));
  });
  usage({"batch_norm", "ref:0", "ref:1"},
        [&] { batch_norm(here, channels, far, channels, channels); });
  usage({"cross_entropy", "ref:0", "ref:1"}, [&] {
    cross_entropy(make({2, 3}), labels({0, 1}, "ref:1"));
  });
  usage({"mse_loss", "ref:0", "ref:1"}, [&] { mse_loss(here, here.to(Device("ref:1"))); });
}

TEST_CASE("checks: conv2d") {
  const Tensor x = make({1, 3, 5, 5}), w = make({4, 3, 3, 3});
  usage({"conv2d", "x", "(3, 5)", "4"}, [] { conv2d(make({3, 5}), make({1, 1, 1, 1})); });
  usage({"conv2d", "weight", "(3, 5)", "4"}, [&] { conv2d(x, make({3, 5})); });
  usage({"conv2d", "3 channels", "expects 4"}, [&] { conv2d(x, make({2, 4, 1, 1})); });
  usage({"conv2d", "4 channels", "6", "2 groups of 3"}, [&] {
    conv2d(make({1, 4, 5, 5}), w, {}, {.groups = 2});
  });
  usage({"conv2d", "3 output channels", "2 groups"}, [&] {
    conv2d(make({1, 4, 5, 5}), make({3, 2, 1, 1}), {}, {.groups = 2});
  });
  usage({"conv2d", "bias", "(3)", "(4)"}, [&] { conv2d(x, w, make({3})); });
  usage({"conv2d", "larger than the padded x"}, [&] { conv2d(x, make({4, 3, 6, 1})); });
  usage({"conv2d", "larger than the padded x"}, [&] { conv2d(x, w, {}, {.dilation = {1, 3}}); });
  usage({"conv2d", "empty"}, [&] { conv2d(make({2, 3, 0, 5}), w); });
  usage({"conv2d", "empty"}, [&] { conv2d(x, make({0, 3, 3, 3})); });
  for (const Conv2dOptions& bad :
       {Conv2dOptions{.stride = 0}, Conv2dOptions{.stride = {1, 0}}, Conv2dOptions{.padding = -1},
        Conv2dOptions{.dilation = 0}, Conv2dOptions{.groups = 0}}) {
    usage({"conv2d", "stride", "expected at least"}, [&] { conv2d(x, w, {}, bad); });
  }
}

TEST_CASE("checks: linear") {
  usage({"linear", "x", "(2, 3, 4)", "2"}, [] { linear(make({2, 3, 4}), make({1, 4})); });
  usage({"linear", "weight", "(4)", "2"}, [] { linear(make({2, 4}), make({4})); });
  usage({"linear", "3 columns", "expects 4"}, [] { linear(make({2, 3}), make({5, 4})); });
  usage({"linear", "bias", "(4)", "(5)"}, [] { linear(make({2, 4}), make({5, 4}), make({4})); });
}

TEST_CASE("checks: batch_norm") {
  const Tensor x = make({2, 3, 2, 2}), c = make({3});
  usage({"batch_norm", "(2, 3, 2)", "2 or 4"}, [&] { batch_norm(make({2, 3, 2}), c, c, c, c); });
  usage({"batch_norm", "3 channels", "(2)"}, [&] { batch_norm(x, make({2}), c, c, c); });
  usage({"batch_norm", "3 channels", "undefined"}, [&] { batch_norm(x, c, {}, c, c); });
  usage({"batch_norm", "3 channels", "(3, 1)"}, [&] { batch_norm(x, c, c, c, make({3, 1})); });
  usage({"batch_norm", "residual", "(2, 3, 2, 1)"}, [&] {
    batch_norm(x, c, c, c, c, {}, make({2, 3, 2, 1}));
  });
  usage({"batch_norm", "f64"}, [&] { batch_norm(x, c, c, c, make({3}, DType::f64)); });
  usage({"1 value per channel", "(1, 3, 1, 1)", "--bn sync"}, [&] {
    batch_norm(make({1, 3, 1, 1}), c, c, c, c);
  });
}

TEST_CASE("checks: one value per channel is right where no statistics are taken") {
  const Tensor x = make({1, 3, 1, 1}), c = make({3});
  CHECK(batch_norm(x, c, c, c, c, {.mode = BatchNormMode::frozen}).defined());
  CHECK(batch_norm(x, c, c, c, c, {.training = false}).defined());
}

TEST_CASE("checks: pooling") {
  const Tensor x = make({1, 1, 4, 4});
  for (auto* op : {&max_pool2d, &avg_pool2d}) {
    usage({"_pool2d", "(4, 4)", "4"}, [&] { op(make({4, 4}), {}); });
    usage({"_pool2d", "kernel 0x0", "at least 1"}, [&] { op(x, {.kernel = 0, .stride = {}}); });
    usage({"_pool2d", "stride 0x1", "at least 1"}, [&] { op(x, {.stride = Pair(0, 1)}); });
    usage({"_pool2d", "padding 2x2", "half the kernel 3x3"},
          [&] { op(x, {.kernel = 3, .stride = {}, .padding = 2}); });
    usage({"_pool2d", "padding -1x0"}, [&] {
      op(x, {.kernel = 3, .stride = {}, .padding = {-1, 0}});
    });
    usage({"_pool2d", "kernel 5x5", "larger"}, [&] { op(x, {.kernel = 5, .stride = {}}); });
  }
  usage({"max_pool2d", "17x17", "256"}, [] {
    max_pool2d(make({1, 1, 20, 20}), {.kernel = 17, .stride = {}});
  });
  usage({"global_avg_pool2d", "(2, 3)"}, [] { global_avg_pool2d(make({2, 3})); });
}

TEST_CASE("checks: losses") {
  const Tensor logits = make({2, 3});
  usage({"cross_entropy", "logits", "(3)"}, [] { cross_entropy(make({3}), labels({0})); });
  usage({"cross_entropy", "labels", "(2, 1)"}, [&] {
    cross_entropy(logits, make({2, 1}, DType::i64));
  });
  usage({"cross_entropy", "i32", "expected i64"},
        [&] { cross_entropy(logits, make({2}, DType::i32)); });
  usage({"cross_entropy", "2 rows", "3 labels"}, [&] { cross_entropy(logits, labels({0, 1, 2})); });
  usage({"cross_entropy", "empty", "scale"}, [] { cross_entropy(make({0, 3}), labels({})); });
  usage({"cross_entropy", "empty"}, [] {
    cross_entropy(make({2, 0}), labels({0, 0}), {.scale = 1});
  });
  for (double smoothing : {-0.1, 1.0}) {
    usage({"cross_entropy", "smoothing", "[0, 1)"}, [&] {
      cross_entropy(logits, labels({0, 1}), {.label_smoothing = smoothing, .scale = {}});
    });
  }
  usage({"mse_loss", "(2, 3)", "(3, 2)"}, [&] { mse_loss(logits, make({3, 2})); });
  usage({"mse_loss", "empty", "scale"}, [] { mse_loss(make({0}), make({0})); });
  Tensor target = make({2, 3});
  target.set_requires_grad();
  usage({"mse_loss", "target"}, [&] { mse_loss(logits, target); });
}

TEST_CASE("checks: a label out of range is a data error when the value is read") {
  for (std::int64_t label : {-1, 3}) {
    for (const char* device : {"ref:0", "cpu:0"}) {
      INFO(device);
      expect_error(ErrorKind::data, {std::to_string(label)}, [&] {
        cross_entropy(make({2, 3}, DType::f32, device), labels({0, label}, device)).item();
      });
    }
  }
}

TEST_CASE("checks: sums, elementwise, views") {
  usage({"mean", "empty"}, [] { mean(make({0, 2})); });
  usage({"multiply", "(2, 3)", "(3, 2)"}, [] { multiply(make({2, 3}), make({3, 2})); });
  usage({"reshape", "(2, 3)", "6", "(4)"}, [] { make({2, 3}).reshape({4}); });
  usage({"reshape", "(2, 3)"}, [] { make({2, 3}).reshape({4, -1}); });
  usage({"reshape", "-1"}, [] { make({2, 3}).reshape({-1, -1}); });
  const std::int64_t large = std::int64_t{1} << 31;
  usage({"reshape", "(2, 3)"}, [=] { make({2, 3}).reshape({large, large, 4, -1}); });
  usage({"reshape", "-2"}, [] { make({2, 3}).reshape({-2, 3}); });
  usage({"flatten", "batch"}, [] { make({}).flatten(); });
  usage({"slice", "batch"}, [] { make({}).slice(0, 0); });
  for (auto [begin, end] : {std::pair{-1, 1}, {0, 3}, {2, 1}}) {
    usage({"slice", "(2, 3)"}, [b = begin, e = end] { make({2, 3}).slice(b, e); });
  }
  usage({"split", "0 images"}, [] { make({2, 3}).split(0); });
  usage({"copy_", "(2)", "(3)"}, [] { make({2}).copy_(make({3})); });
  usage({"item", "(2)", "2 elements"}, [] { make({2}).item(); });
}

TEST_CASE("checks: cat") {
  const Tensor x = make({2, 3});
  usage({"cat", "no tensors"}, [] { cat({}); });
  usage({"cat", "undefined"}, [&] { cat({x, {}}); });
  usage({"cat", "f32 ()", "batch dimension"}, [] { cat({make({})}); });
  usage({"cat", "f32 (2, 4)", "f32 (2, 3)"}, [&] { cat({x, make({2, 4})}); });
  usage({"cat", "f64 (2, 3)", "f32 (2, 3)"}, [&] { cat({x, make({2, 3}, DType::f64)}); });
  usage({"cat", "ref:0", "ref:1"}, [&] { cat({x, make({2, 3}, DType::f32, "ref:1")}); });
}

TEST_CASE("checks: tensors and backward") {
  usage({"3 values", "(2)"}, [] { Tensor::from(std::vector<float>{1, 2, 3}, {2}, "ref:0"); });
  usage({"5 extents"}, [] { Tensor::zeros({1, 1, 1, 1, 1}); });
  usage({"set_requires_grad", "i64"}, [] { make({1}, DType::i64).set_requires_grad(); });
  Tensor x = make({2});
  x.set_requires_grad();
  Tensor y = relu(x);
  usage({"set_requires_grad", "leaves"}, [&] { y.set_requires_grad(); });
  usage({"on_gradient", "leaves"}, [&] { y.on_gradient([](Tensor&) {}); });
  usage({"backward", "2 elements"}, [&] { y.backward(); });
  usage({"backward", "(2)", "(3)"}, [&] { backward({y}, {make({3})}); });
  usage({"backward", "ref:0", "ref:1"}, [&] { backward({y}, {make({2}, DType::f32, "ref:1")}); });
  usage({"backward", "f64"}, [&] { backward({y}, {make({2}, DType::f64)}); });
  usage({"backward", "1 roots", "2 gradients"}, [&] { backward({y}, {y, y}); });
  usage({"backward", "does not depend"}, [] { make({}).backward(); });
}

}  // namespace convoy::testing
