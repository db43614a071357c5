#include "engine/ops/ops.h"
#include "tests/engine/gradient_case.h"
#include "tests/support/catch.h"
#include "tests/support/expect_error.h"
#include "tests/support/op_case.h"

namespace convoy::testing {
namespace {

// All kernels of the op, as of one layer.
OpCase row_scale_case(const RowScaleShape& shape) {
  OpCase result{"row_scale", OpClass::sum};
  result.terms = double(shape.rows);
  result.takes_bf16 = false;
  return result.input("x", {shape.rows, shape.width})
      .input("w", {shape.width})
      .input("dy", {shape.rows, shape.width})
      .output("y", {shape.rows, shape.width})
      .output("dx", {shape.rows, shape.width})
      .output("dw", {shape.width})
      .run([=](const Launch& l) {
        l.kernels.row_scale_forward(l.stream, shape, l["x"], l["w"], l["y"]);
        l.kernels.row_scale_input_gradient(l.stream, shape, l["dy"], l["w"], l["dx"]);
        l.kernels.row_scale_weight_gradient(l.stream, shape, l["x"], l["dy"], l["dw"]);
      });
}

}  // namespace

TEST_CASE("row_scale: backends agree with the reference") {
  for (const RowScaleShape& shape : {RowScaleShape{1, 1}, {7, 33}, {200, 5}}) {
    check(row_scale_case(shape));
  }
}

TEST_CASE("row_scale: by hand") {
  OpCase op_case = row_scale_case({2, 2});
  op_case.op_class = OpClass::exact;
  op_case.operands[0].values = {1, 2, 3, 4};
  op_case.operands[1].values = {5, -6};
  op_case.operands[2].values = {1, 10, 100, 1000};
  for (const Variant& variant : float_variants(op_case)) {
    compare(op_case, variant, run(op_case, variant),
            {{"y", {5, -12, 15, -24}}, {"dx", {5, -60, 500, -6000}}, {"dw", {301, 4020}}});
  }
}

TEST_CASE("row_scale: gradients") {
  check_gradients({"row_scale", {{"x", {4, 3}}, {"w", {3}}}, [](const std::vector<Tensor>& in) {
                     return row_scale(in[0], in[1]);
                   }});
}

TEST_CASE("row_scale: refuses operands that do not fit") {
  const Tensor x = Tensor::zeros({2, 3}, kOracle);
  expect_error(ErrorKind::usage, {"row_scale: x has 3 columns, weight has 4 factors"},
               [&] { row_scale(x, Tensor::zeros({4}, kOracle)); });
}

}  // namespace convoy::testing
