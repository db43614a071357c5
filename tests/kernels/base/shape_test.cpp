#include "kernels/base/shape.h"

#include "kernels/shapes.h"
#include "tests/support/expect_error.h"

namespace convoy::testing {

TEST_CASE("shape: extents, count, text") {
  const Shape shape{8, 3, 32, 30};
  CHECK(shape.rank() == 4);
  CHECK(shape[1] == 3);
  CHECK(shape[-1] == 30);
  CHECK(shape.count() == 23040);
  CHECK(to_string(shape) == "(8, 3, 32, 30)");
  CHECK(shape.with(-1, 32) == Shape{8, 3, 32, 32});
  CHECK(shape.with(0, 1) == Shape{1, 3, 32, 30});
  CHECK(shape.extents() == std::vector<std::int64_t>{8, 3, 32, 30});
  CHECK(Shape{8, 3} != Shape{8, 3, 1});
}

TEST_CASE("shape: a scalar has one element, an empty tensor none") {
  CHECK(Shape().count() == 1);
  CHECK(to_string(Shape()) == "()");
  CHECK(Shape{4, 0, 5}.count() == 0);
}

TEST_CASE("shape: what does not fit is refused") {
  check_error(
      [] {
        Shape{1, 2, 3, 4, 5};
      },
      ErrorKind::usage, "shape: 5 extents, at most 4 are supported");
  check_error([] { Shape{3, -1}; }, ErrorKind::usage, "shape: extent -1 is negative");
  const std::int64_t large = std::int64_t{1} << 31;
  CHECK(Shape{large, large}.count() == std::int64_t{1} << 62);
  check_error(
      [=] {
        Shape({large, large, 2}).count();
      },
      ErrorKind::usage, "shape: (2147483648, 2147483648, 2) holds more than 2^63 elements");
}

TEST_CASE("shape: bytes that do not fit are refused") {
  CHECK(bytes_of({2, 3}, DType::f64) == 48);
  CHECK(bytes_of({}, DType::u8) == 1);
  const std::int64_t large = std::int64_t{1} << 31;
  CHECK(bytes_of({large, large}, DType::u8) == std::size_t{1} << 62);
  check_error(
      [=] {
        bytes_of({large, large}, DType::f32);
      },
      ErrorKind::resource, "shape: (2147483648, 2147483648) of f32 needs more than 2^63 bytes");
}

TEST_CASE("shapes of kernels: sizes of results") {
  const Conv2dShape conv{2, 6, 9, 11, 8, 3, 2, 2, 1, 2, 3, 1, 2, 2};
  CHECK(conv.weight() == Shape{8, 3, 3, 2});
  CHECK(conv.y() == Shape{2, 8, 6, 15});
  const Pool2dShape pool{1, 3, 7, 9, 3, 3, 2, 2, 1, 1};
  CHECK(pool.y() == Shape{1, 3, 4, 5});
}

}  // namespace convoy::testing
