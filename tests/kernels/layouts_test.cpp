#include "tests/kernels/conv2d_cases.h"
#include "tests/support/expect_error.h"

namespace convoy::testing {
namespace {

// x in `slot`'s layout and back.
OpCase round_trip(const Conv2dShape& shape, const Shape& tensor, Slot slot) {
  OpCase result{to_string(shape) + " reorder", OpClass::exact};
  result.layouts = shape;
  const Slot plain = slot == Slot::conv_weight ? Slot::plain_weight : Slot::plain;
  return result.input("x", tensor, plain)
      .output("there", tensor, slot)
      .output("back", tensor, plain)
      .run([=](const Launch& l) {
        l.kernels.reorder(l.stream, tensor, l["x"], l["there"]);
        l.kernels.reorder(l.stream, tensor, l["there"], l["back"]);
      });
}

OpCase cast_case(DType from, DType to, std::vector<double> values) {
  const std::int64_t count = std::ssize(values);
  return OpCase{std::string("cast ") + name(from) + " to " + name(to), OpClass::exact}
      .input_of(from, "x", {count}, std::move(values))
      .output_of(to, "y", {count})
      .run([=](const Launch& l) { l.kernels.cast(l.stream, count, l["x"], l["y"]); });
}

void check_exact(const OpCase& op_case, const Results& expected) {
  for (const Variant& variant : float_variants(op_case)) {
    compare(op_case, variant, run(op_case, variant), expected);
  }
}

}  // namespace

TEST_CASE("reorder: to a preferred layout and back changes nothing") {
  for (const Conv2dShape& shape : conv2d_shapes()) {
    check(round_trip(shape, shape.x(), Slot::conv_x));
    check(round_trip(shape, shape.weight(), Slot::conv_weight));
    check(round_trip(shape, shape.y(), Slot::conv_y));
  }
}

TEST_CASE("reorder: copies one- and two-dimensional tensors and none at all") {
  const Conv2dShape unused{1, 1, 1, 1, 1, 1, 1};
  check(round_trip(unused, {7}, Slot::plain));
  check(round_trip(unused, {3, 5}, Slot::plain));
  check(round_trip(unused, {0, 5, 2, 2}, Slot::plain));
}

TEST_CASE("layout_bytes: what does not fit is refused") {
  for (const Device& device : tested_devices()) {
    const KernelTable& kernels = context(device).kernels();
    const Error error = error_of([&] {
      kernels.layout_bytes(kPlain, {std::int64_t{1} << 31, std::int64_t{1} << 31}, DType::f32);
    });
    CHECK(error.kind() == ErrorKind::resource);
  }
}

TEST_CASE("layout_bytes: plain is what the elements need, others no less") {
  for (const Device& device : tested_devices()) {
    const KernelTable& kernels = context(device).kernels();
    CHECK(kernels.layout_bytes(kPlain, {2, 3, 5, 7}, DType::f32) == 840);
    CHECK(kernels.layout_bytes(kPlain, {2, 3, 5, 7}, DType::f64) == 1680);
    CHECK(kernels.layout_bytes(kPlain, {9}, DType::u8) == 9);
    CHECK(kernels.layout_bytes(kPlain, {}, DType::i64) == 8);
    for (const Conv2dShape& shape : conv2d_shapes()) {
      const Conv2dLayouts layouts = kernels.conv2d_layouts(shape, DType::f32);
      auto holds = [&](LayoutId layout, const Shape& tensor) {
        return kernels.layout_bytes(layout, tensor, DType::f32) >= sizeof(float) * tensor.count();
      };
      CHECK(holds(layouts.x, shape.x()));
      CHECK(holds(layouts.weight, shape.weight()));
      CHECK(holds(layouts.y, shape.y()));
    }
  }
}

TEST_CASE("cast: between float and double, rounding to nearest") {
  check_exact(cast_case(DType::f32, DType::f64, {1.5, -0.25, 3}), {{"y", {1.5, -0.25, 3}}});
  check_exact(cast_case(DType::f64, DType::f32, {1 + 1e-9, 0.1, -2}),
              {{"y", {1, double(0.1f), -2}}});
}

TEST_CASE("cast: whole numbers too, cutting off") {
  check_exact(cast_case(DType::u8, DType::f32, {0, 255}), {{"y", {0, 255}}});
  check_exact(cast_case(DType::f64, DType::i64, {-3.7, 1e12}), {{"y", {-3, 1e12}}});
  check_exact(cast_case(DType::i64, DType::i32, {-5, 7}), {{"y", {-5, 7}}});
}

}  // namespace convoy::testing
