#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "tests/kernels/torch_values.h"
#include "tests/support/catch.h"

namespace convoy::testing {
namespace {

const double kNan = std::nan("");
const double kInfinity = std::numeric_limits<double>::infinity();

// n, c, h, w, kernel, stride, padding
std::vector<Pool2dShape> shapes() {
  return {
      {2, 64, 16, 16, 3, 3, 2, 2, 1, 1}, {1, 3, 7, 9, 3, 3, 2, 2, 1, 1},  {2, 5, 6, 6, 2, 2, 2, 2},
      {2, 33, 2, 2, 2, 2, 2, 2},         {3, 5, 7, 7, 7, 7, 7, 7},        {1, 4, 1, 1, 1, 1, 1, 1},
      {2, 3, 7, 6, 3, 2, 2, 1, 1, 1},    {1, 16, 5, 8, 2, 3, 1, 3, 0, 1}, {1, 2, 9, 9, 2, 2, 3, 3},
  };
}

std::string to_string(const Pool2dShape& s) {
  return fmt::format("{}x{}x{}x{} kernel {}x{} stride {}x{} padding {}x{}", s.n, s.c, s.h, s.w,
                     s.kernel_h, s.kernel_w, s.stride_h, s.stride_w, s.padding_h, s.padding_w);
}

Conv2dShape convolution(const Pool2dShape& s) {
  return {s.n, s.c, s.h, s.w, s.c, 3, 3, 1, 1, 1, 1};
}

OpCase pool_case(const std::string& name, const Pool2dShape& shape) {
  OpCase result{name + " " + to_string(shape), OpClass::elementwise};
  result.layouts = convolution(shape);
  return result;
}

// Forward and backward in one, because the index is in the layout of y. With `plain_y`, x alone has
// the preferred layout.
OpCase max_case(const Pool2dShape& shape, bool plain_y) {
  const Slot y_slot = plain_y ? Slot::plain : Slot::conv_y;
  OpCase result = pool_case("max_pool2d", shape);
  return result.input("x", shape.x(), Slot::conv_y)
      .input("dy", shape.y(), y_slot)
      .output("y", shape.y(), y_slot, OpClass::exact)
      .scratch_of(DType::u8, "index", shape.y(), y_slot)
      .output("dx", shape.x(), Slot::conv_y)
      .run([=](const Launch& l) {
        l.kernels.max_pool2d_forward(l.stream, shape, l["x"], l["y"], l["index"]);
        l.kernels.max_pool2d_backward(l.stream, shape, l["dy"], l["index"], l["dx"]);
      });
}

OpCase max_index_case(const Pool2dShape& shape) {
  return pool_case("max_pool2d index", shape)
      .input("x", shape.x())
      .output("y", shape.y(), Slot::plain, OpClass::exact)
      .output_of(DType::u8, "index", shape.y(), OpClass::exact)
      .run([=](const Launch& l) {
        l.kernels.max_pool2d_forward(l.stream, shape, l["x"], l["y"], l["index"]);
      });
}

OpCase avg_case(const Pool2dShape& shape, bool plain_y) {
  const Slot y_slot = plain_y ? Slot::plain : Slot::conv_y;
  return pool_case("avg_pool2d", shape)
      .input("x", shape.x(), Slot::conv_y)
      .input("dy", shape.y(), y_slot)
      .output("y", shape.y(), y_slot)
      .output("dx", shape.x(), Slot::conv_y)
      .run([=](const Launch& l) {
        l.kernels.avg_pool2d_forward(l.stream, shape, l["x"], l["y"]);
        l.kernels.avg_pool2d_backward(l.stream, shape, l["dy"], l["dx"]);
      });
}

OpCase with_key(OpCase op_case, const std::string& key) {
  op_case.name = key;
  for (Operand& operand : op_case.operands) {
    if (operand.use != Use::input) continue;
    operand.values = signed_values(key + "/" + operand.name, operand.shape.count());
  }
  return op_case;
}

// Runs on all devices, and once more in f64 on the reference.
void check_exact(const OpCase& op_case, const Results& expected) {
  std::vector<Variant> variants = float_variants(op_case);
  variants.push_back({"ref:0", DType::f64});
  for (const Variant& variant : variants) {
    compare(op_case, variant, run(op_case, variant), expected);
  }
}

}  // namespace

TEST_CASE("max_pool2d: backends agree with the reference") {
  for (const Pool2dShape& shape : shapes()) {
    check(max_case(shape, false));
    check(max_case(shape, true));
    check(max_index_case(shape));
  }
}

TEST_CASE("avg_pool2d: backends agree with the reference") {
  for (Pool2dShape shape : shapes()) {
    for (bool count_padding : {true, false}) {
      shape.count_padding = count_padding;
      check(avg_case(shape, false));
      check(avg_case(shape, true));
    }
  }
}

TEST_CASE("pooling with uneven windows as PyTorch") {
  Pool2dShape shape{2, 3, 7, 6, 3, 2, 2, 1, 1, 1};
  const std::string max = "max_pool2d uneven", padded = "avg_pool2d padded",
                    valid = "avg_pool2d valid";
  check_digests(with_key(max_case(shape, false), max), torch_values(max, {"y", "dx"}));
  check_digests(with_key(avg_case(shape, false), padded), torch_values(padded, {"y", "dx"}));
  shape.count_padding = false;
  check_digests(with_key(avg_case(shape, false), valid), torch_values(valid, {"y", "dx"}));
}

TEST_CASE("max_pool2d: the first of equal values wins, and gets the gradient") {
  const Pool2dShape shape{1, 1, 2, 4, 2, 2, 2, 2};
  OpCase op_case = max_case(shape, true);
  op_case.op_class = OpClass::exact;
  op_case.operands[0].values = {1, 3, -5, -5, 3, 3, -5, -5};
  op_case.operands[1].values = {10, 20};
  check_exact(op_case, {{"y", {3, -5}}, {"dx", {0, 10, 20, 0, 0, 0, 0, 0}}});
  OpCase index = max_index_case(shape);
  index.operands[0].values = op_case.operands[0].values;
  check_exact(index, {{"y", {3, -5}}, {"index", {1, 0}}});
}

TEST_CASE("max_pool2d: overlapping windows add their gradients") {
  OpCase op_case = max_case({1, 1, 3, 3, 2, 2, 1, 1}, true);
  op_case.op_class = OpClass::exact;
  op_case.operands[0].values = {1, 2, 3, 4, 9, 5, 6, 7, 8};
  op_case.operands[1].values = {1, 2, 3, 4};
  check_exact(op_case, {{"y", {9, 9, 9, 9}}, {"dx", {0, 0, 0, 0, 10, 0, 0, 0, 0}}});
}

TEST_CASE("max_pool2d: NaN wins, padding never does") {
  const Pool2dShape shape{1, 1, 1, 5, 1, 3, 1, 2, 0, 1};
  OpCase op_case = max_index_case(shape);
  op_case.operands[0].values = {-7, -8, kNan, 5, -kInfinity};
  check_exact(op_case, {{"y", {-7, kNan, 5}}, {"index", {1, 1, 0}}});
  op_case.operands[0].values = {-kInfinity, -kInfinity, -kInfinity, -kInfinity, -kInfinity};
  check_exact(op_case, {{"y", {-kInfinity, -kInfinity, -kInfinity}}, {"index", {1, 0, 0}}});
}

TEST_CASE("avg_pool2d: padding in the divisor, or not") {
  Pool2dShape shape{1, 1, 1, 3, 1, 3, 1, 3, 0, 1};
  OpCase padded = avg_case(shape, true);
  padded.op_class = OpClass::exact;
  padded.operands[0].values = {3, 6, 100};
  padded.operands[1].values = {12};
  check_exact(padded, {{"y", {3}}, {"dx", {4, 4, 0}}});
  shape.count_padding = false;
  OpCase valid = avg_case(shape, true);
  valid.op_class = OpClass::exact;
  valid.operands[0].values = {3, 6, 100};
  valid.operands[1].values = {12};
  check_exact(valid, {{"y", {4.5}}, {"dx", {6, 6, 0}}});
}

}  // namespace convoy::testing
