#include <numeric>

#include "tests/kernels/conv2d_cases.h"
#include "tests/kernels/torch_values.h"
#include "tests/support/catch.h"

namespace convoy::testing {
namespace {

std::vector<OpCase> cases_of(const Conv2dShape& shape) {
  return {conv2d_forward_case(shape, false), conv2d_forward_case(shape, true),
          conv2d_input_gradient_case(shape), conv2d_weight_gradient_case(shape, false),
          conv2d_weight_gradient_case(shape, true)};
}

// The definition, word for word.
std::vector<double> forward_by_definition(const Conv2dShape& s, const std::vector<double>& x,
                                          const std::vector<double>& w) {
  std::vector<double> y;
  const std::int64_t channels = s.c / s.groups;
  for (std::int64_t n = 0; n < s.n; ++n)
    for (std::int64_t k = 0; k < s.k; ++k)
      for (std::int64_t p = 0; p < s.out_h(); ++p)
        for (std::int64_t q = 0; q < s.out_w(); ++q) {
          double sum = 0;
          for (std::int64_t c = 0; c < channels; ++c)
            for (std::int64_t r = 0; r < s.r; ++r)
              for (std::int64_t t = 0; t < s.s; ++t) {
                const std::int64_t i = p * s.stride_h - s.padding_h + r * s.dilation_h;
                const std::int64_t j = q * s.stride_w - s.padding_w + t * s.dilation_w;
                if (i < 0 || i >= s.h || j < 0 || j >= s.w) continue;
                const std::int64_t from = k / (s.k / s.groups) * channels + c;
                sum += x[((n * s.c + from) * s.h + i) * s.w + j] *
                       w[((k * channels + c) * s.r + r) * s.s + t];
              }
          y.push_back(sum);
        }
  return y;
}

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

const Variant kOracle{"ref:0", DType::f64};

}  // namespace

TEST_CASE("conv2d: backends agree with the reference") {
  for (const Conv2dShape& shape : conv2d_shapes()) {
    for (const OpCase& op_case : cases_of(shape)) check(op_case);
  }
}

TEST_CASE("conv2d: sums of integers have the same bits on all backends") {
  for (const Conv2dShape& shape : conv2d_shapes()) {
    for (const OpCase& op_case : cases_of(shape)) check(with_integers(op_case));
  }
}

TEST_CASE("conv2d: the reference follows the definition") {
  for (const Conv2dShape& shape : conv2d_shapes()) {
    const OpCase op_case = with_integers(conv2d_forward_case(shape, false));
    const auto expected =
        forward_by_definition(shape, op_case.operands[0].values, op_case.operands[1].values);
    compare(op_case, kOracle, run(op_case, kOracle), {{"y", expected}});
  }
}

TEST_CASE("conv2d: gradients are the transposes of the forward product") {
  for (const Conv2dShape& shape : conv2d_shapes()) {
    INFO(to_string(shape));
    auto x = integers("x", shape.x().count(), 4), w = integers("w", shape.weight().count(), 4);
    auto dy = integers("dy", shape.y().count(), 4);
    OpCase forward = conv2d_forward_case(shape, false);
    forward.operands[0].values = x;
    forward.operands[1].values = w;
    OpCase by_input = conv2d_input_gradient_case(shape);
    by_input.operands[0].values = dy;
    by_input.operands[1].values = w;
    OpCase by_weight = conv2d_weight_gradient_case(shape, false);
    by_weight.operands[0].values = x;
    by_weight.operands[1].values = dy;
    const double expected = dot(run(forward, kOracle)["y"], dy);
    CHECK(dot(run(by_input, kOracle)["dx"], x) == expected);
    CHECK(dot(run(by_weight, kOracle)["dw"], w) == expected);
  }
}

TEST_CASE("conv2d: an uneven convolution as PyTorch") {
  const Conv2dShape shape{2, 6, 9, 11, 8, 3, 2, 2, 1, 2, 3, 1, 2, 2};
  const std::string key = "conv2d uneven";
  const auto dy = signed_values(key + "/dy", shape.y().count());
  auto set = [&](OpCase op_case) {
    for (Operand& operand : op_case.operands) {
      operand.values = signed_values(key + "/" + operand.name, operand.shape.count());
    }
    return op_case;
  };
  check_digests(set(conv2d_forward_case(shape, true)), torch_values(key, {"y"}));
  check_digests(set(conv2d_input_gradient_case(shape)), torch_values(key, {"dx"}));
  check_digests(set(conv2d_weight_gradient_case(shape, true)), torch_values(key, {"dw", "db"}));
}

TEST_CASE("conv2d: a batch without images gives zero gradients") {
  const Conv2dShape shape{0, 3, 4, 4, 5, 3, 3};
  const OpCase op_case = conv2d_weight_gradient_case(shape, true);
  for (const Variant& variant : float_variants(op_case)) {
    Results results = run(op_case, variant);
    INFO(to_string(variant));
    CHECK(results["dw"] == std::vector<double>(shape.weight().count()));
    CHECK(results["db"] == std::vector<double>(shape.k));
  }
}

}  // namespace convoy::testing
