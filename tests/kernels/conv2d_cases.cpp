#include "tests/kernels/conv2d_cases.h"

#include <fmt/format.h>

namespace convoy::testing {

// n, c, h, w, k, r, s, stride, padding, dilation, groups
std::vector<Conv2dShape> conv2d_shapes() {
  return {
      {2, 3, 32, 32, 64, 7, 7, 2, 2, 3, 3},
      {2, 64, 8, 8, 64, 1, 1},
      {2, 64, 8, 8, 64, 3, 3, 1, 1, 1, 1},
      {2, 64, 9, 9, 64, 3, 3, 2, 2, 1, 1},
      {2, 64, 9, 9, 128, 1, 1, 2, 2},
      {2, 128, 2, 2, 160, 3, 3, 1, 1, 1, 1},
      {3, 512, 1, 1, 128, 1, 1},
      {1, 5, 7, 11, 6, 3, 3, 1, 1, 1, 1},
      {3, 7, 13, 5, 9, 5, 3, 2, 1, 2, 1},
      {1, 1, 1, 1, 1, 1, 1},
      {2, 4, 10, 10, 8, 3, 3, 1, 1, 2, 2, 2, 2},
      {2, 8, 6, 6, 8, 3, 3, 1, 1, 1, 1, 1, 1, 2},
      {2, 12, 5, 7, 12, 3, 3, 1, 1, 1, 1, 1, 1, 12},
      {2, 6, 9, 11, 8, 3, 2, 2, 1, 2, 3, 1, 2, 2},
      {1, 17, 6, 4, 33, 2, 3, 1, 2, 0, 1},
      {1, 3, 5, 5, 2, 5, 5},
      {1, 2, 3, 3, 3, 3, 3, 3, 3, 4, 4},
      {1, 16, 8, 8, 32, 1, 1, 3, 2},
  };
}

std::string to_string(const Conv2dShape& s) {
  return fmt::format(
      "conv2d x {}x{}x{}x{} w {}x{}x{}x{} stride {}x{} padding {}x{} dilation {}x{} groups {}", s.n,
      s.c, s.h, s.w, s.k, s.c / s.groups, s.r, s.s, s.stride_h, s.stride_w, s.padding_h,
      s.padding_w, s.dilation_h, s.dilation_w, s.groups);
}

double forward_terms(const Conv2dShape& shape) {
  const std::int64_t channels = shape.c / shape.groups;
  return double(channels * shape.r * shape.s);
}

double input_gradient_terms(const Conv2dShape& shape) {
  const std::int64_t channels = shape.k / shape.groups;
  return double(channels * shape.r * shape.s);
}

double weight_gradient_terms(const Conv2dShape& shape) {
  return double(shape.n * shape.out_h() * shape.out_w());
}

OpCase conv2d_forward_case(const Conv2dShape& shape, bool bias) {
  OpCase result{to_string(shape) + (bias ? " forward, bias" : " forward"), OpClass::product};
  result.input("x", shape.x(), Slot::conv_x).input("w", shape.weight(), Slot::conv_weight);
  if (bias) result.input("b", {shape.k});
  result.output("y", shape.y(), Slot::conv_y).run([=](const Launch& l) {
    l.kernels.conv2d_forward(l.stream, shape, l["x"], l["w"], l["b"], l["y"]);
  });
  result.layouts = shape;
  result.terms = forward_terms(shape);
  return result.full({"b"});
}

OpCase conv2d_input_gradient_case(const Conv2dShape& shape) {
  OpCase result{to_string(shape) + " input gradient", OpClass::product};
  result.input("dy", shape.y(), Slot::conv_y)
      .input("w", shape.weight(), Slot::conv_weight)
      .output("dx", shape.x(), Slot::conv_x)
      .run([=](const Launch& l) {
        l.kernels.conv2d_input_gradient(l.stream, shape, l["dy"], l["w"], l["dx"]);
      });
  result.layouts = shape;
  result.terms = input_gradient_terms(shape);
  return result;
}

OpCase conv2d_weight_gradient_case(const Conv2dShape& shape, bool bias) {
  OpCase result{to_string(shape) + (bias ? " weight gradient, bias" : " weight gradient"),
                OpClass::product};
  result.input("x", shape.x(), Slot::conv_x)
      .input("dy", shape.y(), Slot::conv_y)
      .output("dw", shape.weight(), Slot::conv_weight);
  if (bias) result.output("db", {shape.k});
  result.layouts = shape;
  result.terms = weight_gradient_terms(shape);
  return result.full({"dw", "db"}).run([=](const Launch& l) {
    l.kernels.conv2d_weight_gradient(l.stream, shape, l["x"], l["dy"], l["dw"], l["db"]);
  });
}

}  // namespace convoy::testing
