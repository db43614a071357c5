// Element types of safetensors files and their conversion to the types that Convoy computes with.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

#include "kernels/base/dtype.h"

namespace convoy {

/// One of the element types that the safetensors format knows. Some are narrower than a byte.
struct FileType {
  std::string_view name;
  int bits;
  /// The type that values have after loading; empty where no type holds them.
  std::optional<DType> loads_as;
};

/// The type called `name` ("F32", "BF16", ...), null if the format has no such type.
const FileType* find_file_type(std::string_view name);

/// The name of `dtype` in a file.
std::string_view file_type_name(DType dtype);

/// Whether values of `type` lie in the file as they lie in memory after loading.
bool loads_unchanged(const FileType& type);

/// Converts file values of `type` to `type.loads_as`: F16 and BF16 to float, small integers to
/// int32, U32 to int64. No value changes. Either span holds the same number of elements.
void convert_loaded(const FileType& type, std::span<const std::byte> in, std::span<std::byte> out);

/// Converts values of a floating `dtype` to float, rounding float64 to nearest.
void to_float(DType dtype, std::span<const std::byte> in, std::span<float> out);

}  // namespace convoy
