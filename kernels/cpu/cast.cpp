// Changes of element type.
#include "kernels/base/bf16.h"
#include "kernels/base/host_stream.h"
#include "kernels/cpu/checks.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/values.h"

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
      return use(Bf16{});
  }
}

// By way of float where one of both is bf16.
template <class To, class From>
To to_type(From value) {
  if constexpr (std::is_same_v<From, Bf16>) {
    return to_type<To>(static_cast<float>(value));
  } else if constexpr (std::is_same_v<To, Bf16>) {
    return Bf16(static_cast<float>(value));
  } else {
    return static_cast<To>(value);
  }
}

template <class From, class To>
void convert(const From* x, To* y, std::int64_t count) {
  parallel_parts(count, [=](std::int64_t, std::int64_t begin, std::int64_t size) {
    for (std::int64_t i = begin; i < begin + size; ++i) y[i] = to_type<To>(x[i]);
  });
}

}  // namespace

void cast(Stream& stream, std::int64_t count, ConstBuffer x, Buffer y) {
  for (ConstBuffer operand : {x, ConstBuffer(y)}) {
    if (operand.dtype == DType::bf16) require_values("cast", stream, {operand});
  }
  auto among_values = [&](DType from, DType to) { return x.dtype == from && y.dtype == to; };
  if (among_values(DType::f32, DType::bf16) || among_values(DType::bf16, DType::f32)) {
    host(stream).submit([=] { convert_values(count, x, y); });
    return;
  }
  host(stream).submit([=] {
    with_type(x.dtype, [&](auto from) {
      with_type(y.dtype,
                [&](auto to) { convert(x.as<decltype(from)>(), y.as<decltype(to)>(), count); });
    });
  });
}

}  // namespace convoy::cpu
