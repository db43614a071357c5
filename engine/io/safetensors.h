// Safetensors files: an eight-byte length, a JSON header, then the tensors' bytes. Anybody's file
// is read with every check the format allows; ours are read by everybody.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "engine/io/file.h"
#include "engine/io/named_array.h"

namespace convoy {

/// What a file holds.
struct SafetensorsFile {
  std::string path;
  /// In the order of their bytes in the file.
  std::vector<NamedArray> tensors;
  std::map<std::string, std::string> metadata;
};

/// Reads a whole file. F16 and BF16 become f32, I8, I16 and U16 i32, U32 i64, BOOL u8, without
/// loss; a tensor of a type that none of ours can hold (U64, C64, F8_*, F6_*, F4) is `checkpoint`,
/// as is any damage. No more memory than the file (twice the file for two-byte types) and 64 MiB is
/// used.
SafetensorsFile read_safetensors(const std::string& path);

/// The same from an open reader at its start; afterwards its hash covers the whole file.
SafetensorsFile read_safetensors(FileReader& reader);

/// Bytes of the file that `write_safetensors` would make.
std::uint64_t safetensors_size(std::span<const NamedArray> tensors,
                               const std::map<std::string, std::string>& metadata = {});

/// Writes `tensors` one after the other, wider types first (so that every value is aligned), else
/// in the order given. Nothing is copied in memory.
void write_safetensors(FileWriter& writer, std::span<const NamedArray> tensors,
                       const std::map<std::string, std::string>& metadata = {});

/// Writes the file `path`, whole or not at all: under a temporary name beside it, synced, renamed.
/// `resource` with path, needed and free bytes if it cannot be written.
void write_safetensors(const std::string& path, std::span<const NamedArray> tensors,
                       const std::map<std::string, std::string>& metadata = {});

}  // namespace convoy
