// Conversion between element types, by C++'s own rules.
#include "kernels/reference/common.h"
#include "kernels/reference/reference.h"

namespace convoy::reference {
namespace {

// Calls `use(T())` for any type but bf16.
template <class Use>
void with_any_type(DType dtype, Use use) {
  switch (dtype) {
    case DType::f32:
      return use(float());
    case DType::f64:
      return use(double());
    case DType::i64:
      return use(std::int64_t());
    case DType::i32:
      return use(std::int32_t());
    case DType::u8:
      return use(std::uint8_t());
    case DType::bf16:
      break;
  }
  CONVOY_FAIL(usage, "cast: dtype {} is not supported on ref, expected f32, f64, i64, i32 or u8",
              name(dtype));
}

}  // namespace

void cast(Stream& stream, std::int64_t count, ConstBuffer x, Buffer y) {
  CONVOY_DCHECK(x.layout == kPlain && y.layout == kPlain,
                "cast: layouts {} and {} are none of ref, expected plain", x.layout, y.layout);
  with_any_type(x.dtype, [&]<class From>(From) {
    with_any_type(y.dtype, [&]<class To>(To) {
      host(stream).submit([=, x = x.as<From>(), y = y.as<To>()] {
        for (std::int64_t i = 0; i < count; ++i) y[i] = static_cast<To>(x[i]);
      });
    });
  });
}

}  // namespace convoy::reference
