#include "kernels/elementwise.h"

#include <cmath>
#include <limits>

#include "tests/kernels/torch_values.h"
#include "tests/support/catch.h"

namespace convoy::testing {
namespace {

const char* name_of(Unary op) {
  switch (op) {
#define CONVOY_CASE(name, value, derivative) \
  case Unary::name:                          \
    return #name;
    CONVOY_UNARY_LIST(CONVOY_CASE)
#undef CONVOY_CASE
  }
  return "?";
}

const char* name_of(Binary op) {
  switch (op) {
#define CONVOY_CASE(name, value, by_a, by_b) \
  case Binary::name:                         \
    return #name;
    CONVOY_BINARY_LIST(CONVOY_CASE)
#undef CONVOY_CASE
  }
  return "?";
}

std::vector<Unary> all_unary() {
  return {
#define CONVOY_NAME(name, value, derivative) Unary::name,
      CONVOY_UNARY_LIST(CONVOY_NAME)
#undef CONVOY_NAME
  };
}

std::vector<Binary> all_binary() {
  return {
#define CONVOY_NAME(name, value, by_a, by_b) Binary::name,
      CONVOY_BINARY_LIST(CONVOY_NAME)
#undef CONVOY_NAME
  };
}

const Shape kShape{2, 19, 3, 5};
// Gives the operands of kShape the layout of its output.
const Conv2dShape kConvolution{2, 19, 3, 5, 19, 3, 3, 1, 1, 1, 1};

// What a function makes of padding, which is zero.
double value_of_zero(Unary op) {
  double value = 0;
  with_formula(op, [&](auto formula) { value = formula.value(0.0); });
  return value;
}

double value_of_zero(Binary op) {
  double value = 0;
  with_formula(op, [&](auto formula) { value = formula.value(0.0, 0.0); });
  return value;
}

OpCase elementwise_case(const std::string& name, OpClass op_class = OpClass::elementwise) {
  OpCase result{name, op_class};
  result.layouts = kConvolution;
  return result;
}

OpCase unary_forward_case(Unary op) {
  OpCase result = elementwise_case(std::string(name_of(op)) + " forward", OpClass::function);
  result.zero_padding = value_of_zero(op) == 0;
  return result.input("x", kShape, Slot::conv_y)
      .output("y", kShape, Slot::conv_y)
      .run([=](const Launch& l) {
        l.kernels.unary_forward(l.stream, op, l.stored.at("x"), l["x"], l["y"]);
      });
}

OpCase unary_backward_case(Unary op) {
  OpCase result = elementwise_case(std::string(name_of(op)) + " backward", OpClass::function);
  return result.input("x", kShape, Slot::conv_y)
      .input("y", kShape, Slot::conv_y)
      .input("dy", kShape, Slot::conv_y)
      .output("dx", kShape, Slot::conv_y)
      .run([=](const Launch& l) {
        l.kernels.unary_backward(l.stream, op, l.stored.at("x"), l["x"], l["y"], l["dy"], l["dx"]);
      });
}

// Both directions, as of one layer.
OpCase unary_whole_case(Unary op) {
  const std::string key = name_of(op);
  OpCase result{key, OpClass::function};
  std::vector<double> x = signed_values(key + "/x", 40);
  for (double& value : x) value *= 4;
  return result.input("x", {40}, Slot::plain, x)
      .input("dy", {40})
      .output("y", {40})
      .output("dx", {40})
      .run([=](const Launch& l) {
        l.kernels.unary_forward(l.stream, op, 40, l["x"], l["y"]);
        l.kernels.unary_backward(l.stream, op, 40, l["x"], l["y"], l["dy"], l["dx"]);
      });
}

OpCase binary_forward_case(Binary op) {
  OpCase result = elementwise_case(std::string(name_of(op)) + " forward");
  result.zero_padding = value_of_zero(op) == 0;
  return result.input("a", kShape, Slot::conv_y)
      .input("b", kShape, Slot::conv_y)
      .output("y", kShape, Slot::conv_y)
      .run([=](const Launch& l) {
        l.kernels.binary_forward(l.stream, op, l.stored.at("a"), l["a"], l["b"], l["y"]);
      });
}

OpCase binary_backward_case(Binary op, bool with_da, bool with_db) {
  OpCase result = elementwise_case(std::string(name_of(op)) + " backward");
  for (const char* in : {"a", "b", "dy"}) result.input(in, kShape, Slot::conv_y);
  if (with_da) result.output("da", kShape, Slot::conv_y);
  if (with_db) result.output("db", kShape, Slot::conv_y);
  return result.run([=](const Launch& l) {
    l.kernels.binary_backward(l.stream, op, l.stored.at("a"), l["a"], l["b"], l["dy"], l["da"],
                              l["db"]);
  });
}

}  // namespace

TEST_CASE("elementwise: backends agree with the reference") {
  for (Unary op : all_unary()) {
    check(unary_forward_case(op));
    check(unary_backward_case(op));
  }
  for (Binary op : all_binary()) {
    check(binary_forward_case(op));
    check(binary_backward_case(op, true, true));
  }
}

TEST_CASE("elementwise: a gradient that nobody wants may be left out") {
  for (Binary op : all_binary()) {
    check(binary_backward_case(op, true, false));
    check(binary_backward_case(op, false, true));
  }
}

TEST_CASE("elementwise: functions and derivatives as PyTorch") {
  for (Unary op : {Unary::relu, Unary::sigmoid, Unary::tanh, Unary::square}) {
    check_digests(unary_whole_case(op), torch_values(name_of(op), {"y", "dx"}));
  }
}

TEST_CASE("elementwise: sums and products by hand") {
  const std::map<Binary, Results> expected = {
      {Binary::add, {{"y", {5, 3}}, {"da", {7, 8}}, {"db", {7, 8}}}},
      {Binary::subtract, {{"y", {-1, 7}}, {"da", {7, 8}}, {"db", {-7, -8}}}},
      {Binary::multiply, {{"y", {6, -10}}, {"da", {21, -16}}, {"db", {14, 40}}}},
  };
  for (const auto& [op, results] : expected) {
    OpCase op_case{name_of(op), OpClass::exact};
    op_case.input("a", {2}, Slot::plain, {2, 5})
        .input("b", {2}, Slot::plain, {3, -2})
        .input("dy", {2}, Slot::plain, {7, 8});
    for (const char* out : {"y", "da", "db"}) op_case.output(out, {2});
    op_case.run([op = op](const Launch& l) {
      l.kernels.binary_forward(l.stream, op, 2, l["a"], l["b"], l["y"]);
      l.kernels.binary_backward(l.stream, op, 2, l["a"], l["b"], l["dy"], l["da"], l["db"]);
    });
    for (const Variant& variant : float_variants(op_case)) {
      compare(op_case, variant, run(op_case, variant), results);
    }
  }
}

TEST_CASE("elementwise: relu at its kink, and with NaN and infinities") {
  const double nan = std::nan(""), infinity = std::numeric_limits<double>::infinity();
  OpCase op_case{"relu kinks", OpClass::exact};
  op_case.input("x", {6}, Slot::plain, {-1, 0, 2, nan, infinity, -infinity})
      .input("dy", {6}, Slot::plain, {1, 2, 3, 4, 5, 6})
      .output("y", {6})
      .output("dx", {6})
      .run([](const Launch& l) {
        l.kernels.unary_forward(l.stream, Unary::relu, 6, l["x"], l["y"]);
        l.kernels.unary_backward(l.stream, Unary::relu, 6, l["x"], l["y"], l["dy"], l["dx"]);
      });
  for (const Variant& variant : float_variants(op_case)) {
    compare(op_case, variant, run(op_case, variant),
            {{"y", {0, 0, 2, nan, infinity, 0}}, {"dx", {0, 0, 3, 4, 5, 0}}});
  }
}

TEST_CASE("fill and scale") {
  for (std::int64_t count : {1, 7, 1000}) {
    OpCase fill{"fill", OpClass::exact};
    check(fill.output("x", {count}).run([=](const Launch& l) {
      l.kernels.fill(l.stream, count, -2.5, l["x"]);
    }));
    for (const Variant& variant : float_variants(fill)) {
      CHECK(run(fill, variant)["x"] == std::vector<double>(count, -2.5));
    }
    OpCase scale{"scale"};
    check(scale.in_place("x", {count}).run([=](const Launch& l) {
      l.kernels.scale(l.stream, count, 0.3, l["x"]);
    }));
  }
}

}  // namespace convoy::testing
