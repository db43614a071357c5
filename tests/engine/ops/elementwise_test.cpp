// Every function of kernels/elementwise_list.h as an op: its value is the list's, on every device,
// and its derivative agrees with differences of the value.
#include "kernels/elementwise.h"

#include <cmath>

#include "engine/ops/ops.h"
#include "tests/engine/gradient_case.h"
#include "tests/support/catch.h"
#include "tests/support/formula.h"
#include "tests/support/tolerance.h"

namespace convoy::testing {
namespace {

struct UnaryCase {
  std::string name;
  Tensor (*op)(const Tensor&);
  double (*value)(double);
};

const UnaryCase kUnary[] = {
#define CONVOY_UNARY_CASE(name, value_of, derivative) \
  {#name, &convoy::name, &elementwise::name::value<double>},
    CONVOY_UNARY_LIST(CONVOY_UNARY_CASE)
#undef CONVOY_UNARY_CASE
};

struct BinaryCase {
  std::string name;
  Tensor (*op)(const Tensor&, const Tensor&);
  double (*value)(double, double);
};

const BinaryCase kBinary[] = {
#define CONVOY_BINARY_CASE(name, value_of, by_a, by_b) \
  {#name, &convoy::name, &elementwise::name::value<double>},
    CONVOY_BINARY_LIST(CONVOY_BINARY_CASE)
#undef CONVOY_BINARY_CASE
};

const TensorOptions kDevices[] = {
    {DType::f64, "ref:0"}, {DType::f32, "ref:0"}, {DType::f32, "cpu:0"}};

std::vector<double> as_stored(std::vector<double> values, DType dtype) {
  if (dtype == DType::f32) {
    for (double& value : values) value = static_cast<float>(value);
  }
  return values;
}

void check_value(const Tensor& actual, const std::vector<double>& expected) {
  INFO(describe(actual));
  CHECK(difference(actual.to_vector<double>(), expected, actual.shape(),
                   tolerance(OpClass::function, actual.dtype())) == kNoDifference);
}

}  // namespace

TEST_CASE("elementwise values are those of the list") {
  const Shape shape{3, 7, 5};
  for (const TensorOptions& options : kDevices) {
    const std::vector<double> a = as_stored(signed_values("a", shape.count()), options.dtype);
    const std::vector<double> b = as_stored(signed_values("b", shape.count()), options.dtype);
    const Tensor x = Tensor::from(a, shape, options), y = Tensor::from(b, shape, options);
    for (const UnaryCase& one : kUnary) {
      INFO(one.name);
      std::vector<double> expected;
      for (double value : a) expected.push_back(one.value(value));
      check_value(one.op(x), expected);
    }
    for (const BinaryCase& one : kBinary) {
      INFO(one.name);
      std::vector<double> expected;
      for (std::size_t i = 0; i < a.size(); ++i) expected.push_back(one.value(a[i], b[i]));
      check_value(one.op(x, y), expected);
    }
  }
}

TEST_CASE("elementwise gradients agree with differences") {
  for (const UnaryCase& one : kUnary) {
    GradientCase given{one.name, {{"x", {4, 5}}}, nullptr, {0}};
    given.function = [&](const std::vector<Tensor>& in) { return one.op(in[0]); };
    check_gradients(given);
  }
  for (const BinaryCase& one : kBinary) {
    GradientCase given{one.name, {{"a", {4, 5}}, {"b", {4, 5}}}, nullptr};
    given.function = [&](const std::vector<Tensor>& in) { return one.op(in[0], in[1]); };
    check_gradients(given);
    GradientCase same{one.name + " with itself", {{"a", {3}}}, nullptr};
    same.function = [&](const std::vector<Tensor>& in) { return one.op(in[0], in[0]); };
    check_gradients(same);
  }
}

TEST_CASE("elementwise ops of nothing give nothing") {
  const Tensor none = Tensor::empty({0, 3}, kOracle);
  CHECK(relu(none).shape() == Shape{0, 3});
  CHECK(add(none, none).to_vector<double>().empty());
  CHECK(sum(none).item() == 0);
}

TEST_CASE("relu keeps NaN and lets its gradient through") {
  for (const char* device : {"ref:0", "cpu:0"}) {
    Tensor x = Tensor::from(std::vector<float>{-1, NAN, 0, 2}, {4}, device);
    x.set_requires_grad();
    const Tensor y = relu(x);
    CHECK(std::isnan(y.to_vector<float>()[1]));
    sum(y).backward();
    CHECK(x.grad().to_vector<float>() == std::vector<float>{0, 1, 0, 1});
  }
}

TEST_CASE("operators are the ops") {
  const Tensor a = Tensor::from(std::vector<float>{1, 2}, {2}, "ref:0");
  const Tensor b = Tensor::from(std::vector<float>{3, 5}, {2}, "ref:0");
  CHECK((a + b).to_vector<float>() == std::vector<float>{4, 7});
  CHECK((a - b).to_vector<float>() == std::vector<float>{-2, -3});
  CHECK((a * b).to_vector<float>() == std::vector<float>{3, 10});
}

}  // namespace convoy::testing
