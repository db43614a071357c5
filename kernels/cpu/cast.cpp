// Changes of element type.
#include "kernels/base/error.h"
#include "kernels/base/host_stream.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/parallel.h"

namespace convoy::cpu {
namespace {

template <class Use>
void with_type(DType dtype, const Use& use) {
  switch (dtype) {
    case DType::f32:
      return use(float{});
    case DType::f64:
      return use(double{});
    case DType::i64:
      return use(std::int64_t{});
    case DType::i32:
      return use(std::int32_t{});
    case DType::u8:
      return use(std::uint8_t{});
    case DType::bf16:
      break;
  }
}

template <class From, class To>
void convert(const From* x, To* y, std::int64_t count) {
  parallel_parts(count, [=](std::int64_t, std::int64_t begin, std::int64_t size) {
    for (std::int64_t i = begin; i < begin + size; ++i) y[i] = static_cast<To>(x[i]);
  });
}

}  // namespace

void cast(Stream& stream, std::int64_t count, ConstBuffer x, Buffer y) {
  CONVOY_CHECK(x.dtype != DType::bf16 && y.dtype != DType::bf16, "cast: {} has no bf16 yet",
               to_string(stream.device()));
  host(stream).submit([=] {
    with_type(x.dtype, [&](auto from) {
      with_type(y.dtype,
                [&](auto to) { convert(x.as<decltype(from)>(), y.as<decltype(to)>(), count); });
    });
  });
}

}  // namespace convoy::cpu
