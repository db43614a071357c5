#include "engine/io/convert.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "kernels/base/error.h"

namespace convoy {

namespace {

constexpr std::array<FileType, 22> kFileTypes{{
    {"F64", 64, DType::f64}, {"F32", 32, DType::f32},
    {"F16", 16, DType::f32}, {"BF16", 16, DType::f32},
    {"I64", 64, DType::i64}, {"I32", 32, DType::i32},
    {"I16", 16, DType::i32}, {"I8", 8, DType::i32},
    {"U8", 8, DType::u8},    {"BOOL", 8, DType::u8},
    {"U16", 16, DType::i32}, {"U32", 32, DType::i64},
    {"U64", 64, {}},         {"C64", 64, {}},
    {"F8_E4M3", 8, {}},      {"F8_E5M2", 8, {}},
    {"F8_E8M0", 8, {}},      {"F8_E4M3FNUZ", 8, {}},
    {"F8_E5M2FNUZ", 8, {}},  {"F6_E2M3", 6, {}},
    {"F6_E3M2", 6, {}},      {"F4", 4, {}},
}};

float half_to_float(std::uint16_t half) {
  const int exponent = half >> 10 & 0x1F;
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000) << 16;
  const std::uint32_t fraction = half & 0x3FF;
  if (exponent == 0) {  // zero or subnormal: fraction x 2^-24, exact in float
    const float value = std::ldexp(static_cast<float>(fraction), -24);
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) | sign);
  }
  const std::uint32_t shifted = exponent == 31 ? 0xFFu : static_cast<std::uint32_t>(exponent + 112);
  return std::bit_cast<float>(sign | shifted << 23 | fraction << 13);
}

float brain_to_float(std::uint16_t value) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value) << 16);
}

/// Applies `function` to each value of type In; memcpy because file data may lie unaligned.
template <class In, class Function>
void map(std::span<const std::byte> in, std::span<std::byte> out, Function function) {
  using Out = decltype(function(In{}));
  const std::size_t count = in.size() / sizeof(In);
  CONVOY_DCHECK(out.size() == count * sizeof(Out), "convert: {} values do not fit into {} bytes",
                count, out.size());
  for (std::size_t i = 0; i < count; ++i) {
    In value;
    std::memcpy(&value, in.data() + i * sizeof(In), sizeof(In));
    const Out result = function(value);
    std::memcpy(out.data() + i * sizeof(Out), &result, sizeof(Out));
  }
}

template <class In, class Out>
Out widen(In value) {
  return static_cast<Out>(value);
}

}  // namespace

const FileType* find_file_type(std::string_view name) {
  for (const FileType& type : kFileTypes) {
    if (type.name == name) return &type;
  }
  return nullptr;
}

std::string_view file_type_name(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return "F32";
    case DType::f64:
      return "F64";
    case DType::bf16:
      return "BF16";
    case DType::i64:
      return "I64";
    case DType::i32:
      return "I32";
    case DType::u8:
      return "U8";
  }
  CONVOY_FAIL(internal, "safetensors: element type {} has no name in files",
              static_cast<int>(dtype));
}

bool loads_unchanged(const FileType& type) {
  return type.loads_as && (type.name == file_type_name(*type.loads_as) || type.name == "BOOL");
}

void convert_loaded(const FileType& type, std::span<const std::byte> in, std::span<std::byte> out) {
  if (type.name == "F16") return map<std::uint16_t>(in, out, half_to_float);
  if (type.name == "BF16") return map<std::uint16_t>(in, out, brain_to_float);
  if (type.name == "I16") return map<std::int16_t>(in, out, widen<std::int16_t, std::int32_t>);
  if (type.name == "I8") return map<std::int8_t>(in, out, widen<std::int8_t, std::int32_t>);
  if (type.name == "U16") return map<std::uint16_t>(in, out, widen<std::uint16_t, std::int32_t>);
  if (type.name == "U32") return map<std::uint32_t>(in, out, widen<std::uint32_t, std::int64_t>);
  CONVOY_FAIL(internal, "safetensors: {} needs no conversion", type.name);
}

void to_float(DType dtype, std::span<const std::byte> in, std::span<float> out) {
  const std::span<std::byte> bytes = std::as_writable_bytes(out);
  switch (dtype) {
    case DType::f32:
      return map<float>(in, bytes, widen<float, float>);
    case DType::f64:
      return map<double>(in, bytes, widen<double, float>);
    case DType::bf16:
      return map<std::uint16_t>(in, bytes, brain_to_float);
    default:
      CONVOY_FAIL(internal, "convert: {} is not floating", name(dtype));
  }
}

}  // namespace convoy
