#include <fmt/format.h>

#include "tests/support/catch.h"
#include "tests/support/op_case.h"

namespace convoy::testing {
namespace {

std::vector<ReduceShape> shapes() {
  return {{1, 1, 1}, {3, 7, 5}, {1, 1000, 1}, {17, 1, 9}, {1, 33, 64}, {40, 65, 1}, {2, 0, 3}};
}

std::string to_string(const ReduceShape& shape) {
  return fmt::format("{}x{}x{}", shape.outer, shape.reduced, shape.inner);
}

OpCase reduce_case(const ReduceShape& shape, double scale) {
  OpCase result{"reduce_sum " + to_string(shape), OpClass::sum};
  result.terms = double(shape.reduced);
  return result.input("x", {shape.outer, shape.reduced, shape.inner})
      .output("y", {shape.outer, shape.inner})
      .run([=](const Launch& l) { l.kernels.reduce_sum(l.stream, shape, scale, l["x"], l["y"]); });
}

OpCase broadcast_case(const ReduceShape& shape, double scale) {
  return OpCase{"broadcast " + to_string(shape)}
      .input("x", {shape.outer, shape.inner})
      .output("y", {shape.outer, shape.reduced, shape.inner})
      .run([=](const Launch& l) { l.kernels.broadcast(l.stream, shape, scale, l["x"], l["y"]); });
}

void check_exact(const OpCase& op_case, const Results& expected) {
  for (const Variant& variant : float_variants(op_case)) {
    compare(op_case, variant, run(op_case, variant), expected);
  }
}

// Three buffers, two of them in layouts of a convolution.
OpCase squares_case() {
  OpCase result{"sum_of_squares", OpClass::double_sum};
  result.layouts = {1, 19, 3, 5, 33, 3, 3, 1, 1, 1, 1};
  result.terms = 19 * 33 * 9;
  return result.input("w", result.layouts.weight(), Slot::conv_weight)
      .input("b", {7})
      .input("x", result.layouts.x(), Slot::conv_x)
      .output_of(DType::f64, "result", {3})
      .run([](const Launch& l) {
        l.kernels.sum_of_squares(l.stream, {l["w"], l["b"], l["x"]},
                                 {l.stored.at("w"), l.stored.at("b"), l.stored.at("x")},
                                 l["result"]);
      });
}

}  // namespace

TEST_CASE("reduce_sum and broadcast: backends agree with the reference") {
  for (const ReduceShape& shape : shapes()) {
    check(reduce_case(shape, 1));
    check(reduce_case(shape, 0.37));
    check(broadcast_case(shape, 1));
    check(broadcast_case(shape, -0.37));
  }
}

TEST_CASE("reduce_sum and broadcast: by hand") {
  OpCase sum = reduce_case({2, 3, 2}, 0.5);
  sum.op_class = OpClass::exact;
  sum.operands[0].values = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  check_exact(sum, {{"y", {4.5, 6, 13.5, 15}}});
  OpCase spread = broadcast_case({2, 2, 2}, 3);
  spread.op_class = OpClass::exact;
  spread.operands[0].values = {1, 2, 3, 4};
  check_exact(spread, {{"y", {3, 6, 3, 6, 9, 12, 9, 12}}});
}

TEST_CASE("sum_of_squares: backends agree with the reference, padding counts for nothing") {
  check(squares_case());
}

TEST_CASE("sum_of_squares: by hand, in double") {
  // 2^24 + 1 is no float: a sum in float would lose the one.
  OpCase op_case{"sum_of_squares by hand", OpClass::exact};
  op_case.input("a", {2}, Slot::plain, {4096, 1})
      .input("b", {1}, Slot::plain, {-3})
      .output_of(DType::f64, "result", {2})
      .run([](const Launch& l) {
        l.kernels.sum_of_squares(l.stream, {l["a"], l["b"]}, {2, 1}, l["result"]);
      });
  check_exact(op_case, {{"result", {16777217, 9}}});
}

}  // namespace convoy::testing
