#include <fmt/format.h>

#include "tests/kernels/torch_values.h"
#include "tests/support/catch.h"

namespace convoy::testing {
namespace {

std::vector<LinearShape> shapes() {
  return {{4, 2048, 10}, {1, 10, 1},   {20, 10, 5}, {1, 1, 1},
          {3, 17, 33},   {33, 513, 7}, {8, 64, 64}};
}

std::string to_string(const LinearShape& shape) {
  return fmt::format("linear {} x {} to {}", shape.rows, shape.in, shape.out);
}

OpCase forward_case(const LinearShape& shape, bool bias) {
  OpCase result{to_string(shape) + (bias ? " forward, bias" : " forward"), OpClass::product};
  result.input("x", {shape.rows, shape.in}).input("w", {shape.out, shape.in});
  if (bias) result.input("b", {shape.out});
  result.terms = double(shape.in);
  return result.output("y", {shape.rows, shape.out}).full({"b"}).run([=](const Launch& l) {
    l.kernels.linear_forward(l.stream, shape, l["x"], l["w"], l["b"], l["y"]);
  });
}

OpCase input_gradient_case(const LinearShape& shape) {
  OpCase result{to_string(shape) + " input gradient", OpClass::product};
  result.terms = double(shape.out);
  return result.input("dy", {shape.rows, shape.out})
      .input("w", {shape.out, shape.in})
      .output("dx", {shape.rows, shape.in})
      .run([=](const Launch& l) {
        l.kernels.linear_input_gradient(l.stream, shape, l["dy"], l["w"], l["dx"]);
      });
}

OpCase weight_gradient_case(const LinearShape& shape, bool bias) {
  OpCase result{to_string(shape) + (bias ? " weight gradient, bias" : " weight gradient"),
                OpClass::product};
  result.terms = double(shape.rows);
  result.input("x", {shape.rows, shape.in})
      .input("dy", {shape.rows, shape.out})
      .output("dw", {shape.out, shape.in});
  if (bias) result.output("db", {shape.out});
  return result.full({"dw", "db"}).run([=](const Launch& l) {
    l.kernels.linear_weight_gradient(l.stream, shape, l["x"], l["dy"], l["dw"], l["db"]);
  });
}

std::vector<OpCase> cases_of(const LinearShape& shape) {
  return {forward_case(shape, false), forward_case(shape, true), input_gradient_case(shape),
          weight_gradient_case(shape, false), weight_gradient_case(shape, true)};
}

}  // namespace

TEST_CASE("linear: backends agree with the reference") {
  for (const LinearShape& shape : shapes()) {
    for (const OpCase& op_case : cases_of(shape)) check(op_case);
  }
}

TEST_CASE("linear: sums of integers have the same bits on all backends") {
  for (const LinearShape& shape : shapes()) {
    for (const OpCase& op_case : cases_of(shape)) check(with_integers(op_case));
  }
}

TEST_CASE("linear: a product by hand") {
  // x = (1 2; 3 4; 5 6), w = (1 -1; 0 2), b = (10, 20), dy = (1 0; 0 1; 1 1).
  const LinearShape shape{3, 2, 2};
  const std::vector<double> x = {1, 2, 3, 4, 5, 6}, w = {1, -1, 0, 2}, dy = {1, 0, 0, 1, 1, 1};
  auto hold = [](OpCase op_case, std::vector<std::vector<double>> inputs, const Results& expected) {
    op_case.op_class = OpClass::exact;
    for (std::size_t i = 0; i < inputs.size(); ++i) op_case.operands[i].values = inputs[i];
    for (const Variant& variant : float_variants(op_case)) {
      compare(op_case, variant, run(op_case, variant), expected);
    }
  };
  hold(forward_case(shape, true), {x, w, {10, 20}}, {{"y", {9, 24, 9, 28, 9, 32}}});
  hold(input_gradient_case(shape), {dy, w}, {{"dx", {1, -1, 0, 2, 1, 1}}});
  hold(weight_gradient_case(shape, true), {x, dy}, {{"dw", {6, 8, 8, 10}}, {"db", {2, 2}}});
}

}  // namespace convoy::testing
