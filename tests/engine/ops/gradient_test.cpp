// Gradients of every op with a kernel of its own, against central differences.
#include "engine/ops/ops.h"
#include "tests/engine/gradient_case.h"
#include "tests/support/catch.h"

namespace convoy::testing {
namespace {

using Tensors = std::vector<Tensor>;

GradientCase conv2d_case(const std::string& name, const Shape& x, const Shape& w, bool bias,
                         const Conv2dOptions& options) {
  GradientCase result{"conv2d " + name, {{"x", x}, {"w", w}}, nullptr};
  if (bias) result.leaves.push_back({"b", {w[0]}});
  result.function = [bias, options](const Tensors& in) {
    return conv2d(in[0], in[1], bias ? in[2] : Tensor(), options);
  };
  return result;
}

// x, weight, bias and, where asked, a residual. Running statistics are anew for each call.
GradientCase batch_norm_case(const std::string& name, const Shape& x, BatchNormOptions options,
                             bool residual) {
  const Shape channels{x[1]};
  GradientCase result{"batch_norm " + name, {{"x", x}, {"w", channels}, {"b", channels}}, nullptr};
  if (residual) result.leaves.emplace_back("r", x);
  result.function = [=](const Tensors& in) {
    const Tensor mean = Tensor::full(channels, 0.25, kOracle);
    const Tensor var = Tensor::full(channels, 0.5, kOracle);
    return batch_norm(in[0], in[1], in[2], mean, var, options, residual ? in[3] : Tensor());
  };
  return result;
}

GradientCase pool_case(const std::string& name, Tensor (*op)(const Tensor&, const Pool2dOptions&),
                       const Shape& x, const Pool2dOptions& options) {
  return {name, {{"x", x}}, [=](const Tensors& in) { return op(in[0], options); }};
}

Tensor labels_of(const std::vector<std::int64_t>& labels) {
  return Tensor::from(labels, {static_cast<std::int64_t>(labels.size())}, "ref:0");
}

}  // namespace

TEST_CASE("gradients of conv2d") {
  check_gradients(conv2d_case("plain", {2, 3, 5, 4}, {4, 3, 3, 3}, false, {}));
  check_gradients(conv2d_case("bias, stride, padding", {2, 2, 6, 5}, {3, 2, 3, 3}, true,
                              {.stride = {2, 1}, .padding = {1, 2}}));
  check_gradients(conv2d_case("dilation", {1, 2, 7, 7}, {2, 2, 3, 2}, true,
                              {.padding = 1, .dilation = {2, 3}}));
  check_gradients(
      conv2d_case("groups", {2, 4, 4, 4}, {6, 2, 3, 3}, true, {.padding = 1, .groups = 2}));
  check_gradients(conv2d_case("depthwise", {1, 3, 4, 4}, {3, 1, 2, 2}, true, {.groups = 3}));
  check_gradients(conv2d_case("places that no window reaches", {1, 1, 6, 6}, {2, 1, 2, 2}, false,
                              {.stride = 4}));
  check_gradients(conv2d_case("one place", {1, 1, 1, 1}, {1, 1, 1, 1}, true, {}));
}

TEST_CASE("gradients of linear") {
  GradientCase with_bias{"linear", {{"x", {3, 4}}, {"w", {5, 4}}, {"b", {5}}}, nullptr};
  with_bias.function = [](const Tensors& in) { return linear(in[0], in[1], in[2]); };
  check_gradients(with_bias);
  GradientCase without{"linear without bias", {{"x", {2, 3}}, {"w", {1, 3}}}, nullptr};
  without.function = [](const Tensors& in) { return linear(in[0], in[1]); };
  check_gradients(without);
}

TEST_CASE("gradients of batch_norm") {
  for (bool residual : {false, true}) {
    for (bool relu : {false, true}) {
      const std::string name = std::string(residual ? "residual " : "") + (relu ? "relu" : "");
      BatchNormOptions options;
      options.relu = relu;
      check_gradients(batch_norm_case("training " + name, {3, 2, 3, 2}, options, residual));
      options.mode = BatchNormMode::frozen;
      check_gradients(batch_norm_case("frozen " + name, {3, 2, 3, 2}, options, residual));
      options = {.training = false, .relu = relu};
      check_gradients(batch_norm_case("evaluation " + name, {3, 2, 3, 2}, options, residual));
    }
  }
  BatchNormPending pending;
  check_gradients(batch_norm_case("deferred", {4, 3, 1, 1},
                                  {.mode = BatchNormMode::deferred, .pending = &pending}, false));
  check_gradients(batch_norm_case("rows", {5, 3}, {.epsilon = 0.1}, true));
  check_gradients(batch_norm_case("two values per channel", {2, 2, 1, 1}, {}, false));
}

TEST_CASE("gradients of pooling") {
  check_gradients(pool_case("max_pool2d", max_pool2d, {2, 2, 4, 6}, {.kernel = 2, .stride = {}}));
  check_gradients(pool_case("max_pool2d overlapping", max_pool2d, {1, 2, 5, 7},
                            {.kernel = 3, .stride = Pair(2), .padding = 1}));
  check_gradients(pool_case("max_pool2d rectangle", max_pool2d, {1, 2, 5, 6},
                            {.kernel = {3, 2}, .stride = Pair(1, 2), .padding = {1, 0}}));
  check_gradients(pool_case("avg_pool2d", avg_pool2d, {2, 2, 4, 6}, {.kernel = 2, .stride = {}}));
  check_gradients(pool_case("avg_pool2d overlapping", avg_pool2d, {1, 2, 5, 7},
                            {.kernel = 3, .stride = Pair(2), .padding = 1}));
  check_gradients(
      pool_case("avg_pool2d without padding in the divisor", avg_pool2d, {1, 2, 5, 5},
                {.kernel = 3, .stride = Pair(2), .padding = 1, .count_padding = false}));
  check_gradients({"global_avg_pool2d", {{"x", {2, 3, 4, 5}}}, [](const Tensors& in) {
                     return global_avg_pool2d(in[0]);
                   }});
}

TEST_CASE("gradients of sums") {
  check_gradients({"sum", {{"x", {2, 3, 2}}}, [](const Tensors& in) { return sum(in[0]); }});
  check_gradients({"mean", {{"x", {4, 5}}}, [](const Tensors& in) { return mean(in[0]); }});
}

TEST_CASE("gradients of losses") {
  const Tensor labels = labels_of({2, 0, 1, 2});
  for (double smoothing : {0.0, 0.3}) {
    for (std::optional<double> scale : {std::optional<double>(), std::optional<double>(0.125)}) {
      GradientCase one{"cross_entropy " + std::to_string(smoothing), {{"x", {4, 3}}}, nullptr};
      one.function = [=](const Tensors& in) {
        return cross_entropy(in[0], labels, {.label_smoothing = smoothing, .scale = scale});
      };
      check_gradients(one);
    }
  }
  const Tensor target = Tensor::full({3, 2}, 0.3, kOracle);
  check_gradients(
      {"mse", {{"x", {3, 2}}}, [=](const Tensors& in) { return mse_loss(in[0], target); }});
  check_gradients({"mse scaled", {{"x", {3, 2}}}, [=](const Tensors& in) {
                     return mse_loss(in[0], target, 0.5);
                   }});
}

TEST_CASE("gradients of views and moves") {
  check_gradients({"cat", {{"x", {2, 3}}, {"y", {1, 3}}}, [](const Tensors& in) {
                     const Tensor none = in[0].slice(1, 1);
                     return square(cat({in[0], none, in[0], in[1]}));
                   }});
  check_gradients(
      {"slice", {{"x", {5, 2, 3}}}, [](const Tensors& in) { return in[0].slice(1, 4); }});
  check_gradients({"slices that overlap", {{"x", {4, 3}}}, [](const Tensors& in) {
                     return multiply(in[0].slice(0, 3), in[0].slice(1, 4));
                   }});
  check_gradients({"reshape", {{"x", {2, 3, 4}}}, [](const Tensors& in) {
                     return square(in[0].reshape({4, -1}));
                   }});
  check_gradients(
      {"flatten", {{"x", {2, 3, 2, 2}}}, [](const Tensors& in) { return in[0].flatten(); }});
  check_gradients({"to another device and back", {{"x", {2, 3}}}, [](const Tensors& in) {
                     return square(square(in[0]).to(Device("ref:1"))).to(Device("ref:0"));
                   }});
}

// float carries 24 bits: too few for differences, and the derivative is 1.
TEST_CASE("the gradient of to(dtype) is converted back") {
  Tensor x = Tensor::from(std::vector<double>{1, 2, 3}, {3}, kOracle);
  x.set_requires_grad();
  const Tensor y = square(x.to(DType::f32));
  CHECK(y.dtype() == DType::f32);
  sum(y).backward();
  CHECK(x.grad().dtype() == DType::f64);
  CHECK(x.grad().to_vector<double>() == std::vector<double>{2, 4, 6});
}

}  // namespace convoy::testing
