// Element types. bf16 is named here so that code which switches over types has its place ready.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace convoy {

enum class DType : std::uint8_t { f32, f64, bf16, i64, i32, u8 };

/// Bytes of one element.
std::size_t size_of(DType dtype);

/// "f32", "f64", "bf16", "i64", "i32", "u8".
const char* name(DType dtype);

/// f32, f64 and bf16: types that gradients may have.
bool is_floating(DType dtype);

/// The type of parameters, their gradients and the optimizer's state beside values of `dtype`:
/// f32 beside bf16, else the same.
DType parameter_type(DType dtype);

template <class T>
struct DTypeOf;
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::f32;
};
template <>
struct DTypeOf<double> {
  static constexpr DType value = DType::f64;
};
template <>
struct DTypeOf<std::int64_t> {
  static constexpr DType value = DType::i64;
};
template <>
struct DTypeOf<std::int32_t> {
  static constexpr DType value = DType::i32;
};
template <>
struct DTypeOf<std::uint8_t> {
  static constexpr DType value = DType::u8;
};

/// The DType of the C++ type T.
template <class T>
inline constexpr DType dtype_of = DTypeOf<T>::value;

}  // namespace convoy
