#include "engine/io/safetensors.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include "engine/io/convert.h"
#include "engine/io/safetensors_header.h"
#include "engine/io/text.h"
#include "kernels/base/error.h"

namespace convoy {

namespace {

std::string wrong_file_hint(std::string_view start) {
  if (start == "version ") return ": Git LFS pointer or wrong file";
  if (start.starts_with("PK")) return ": a zip archive, perhaps a PyTorch .pt or .pth file";
  return ": a wrong or damaged file";
}

/// Reads and checks the header's length.
std::uint64_t read_header_length(FileReader& reader) {
  const std::string path = printable(reader.path());
  if (reader.size() < 8) {
    CONVOY_FAIL(checkpoint, "{}: {} bytes long, a safetensors file has at least 8", path,
                reader.size());
  }
  std::array<std::byte, 8> bytes;
  reader.read(bytes);
  std::uint64_t length = 0;
  for (int i = 7; i >= 0; --i) length = length << 8 | std::to_integer<std::uint64_t>(bytes[i]);
  if (length > std::min(SafetensorsLimits::kHeaderBytes, reader.size() - 8)) {
    CONVOY_FAIL(checkpoint, "{}: header length {}, expected at most {} in a file of {} bytes{}",
                path, length, std::min(SafetensorsLimits::kHeaderBytes, reader.size() - 8),
                reader.size(),
                wrong_file_hint({reinterpret_cast<const char*>(bytes.data()), bytes.size()}));
  }
  return length;
}

SafetensorsHeader read_header(FileReader& reader) {
  std::string text(read_header_length(reader), '\0');
  reader.read(std::as_writable_bytes(std::span(text)));
  return parse_safetensors_header(text, reader.size() - 8 - text.size(), reader.path());
}

/// Reads values that change their type, a piece at a time.
void read_converted(FileReader& reader, const SafetensorsEntry& entry, std::span<std::byte> out) {
  const std::size_t in_size = static_cast<std::size_t>(entry.type->bits / 8);
  const std::size_t out_size = size_of(*entry.type->loads_as);
  constexpr std::size_t kPiece = 1u << 18;
  std::vector<std::byte> piece(std::min<std::size_t>(kPiece, entry.end - entry.begin));
  while (!out.empty()) {
    const std::size_t count = std::min(piece.size() / in_size, out.size() / out_size);
    const std::span<std::byte> in(piece.data(), count * in_size);
    reader.read(in);
    convert_loaded(*entry.type, in, out.first(count * out_size));
    out = out.subspan(count * out_size);
  }
}

NamedArray read_tensor(FileReader& reader, SafetensorsEntry& entry) {
  NamedArray array{std::move(entry.name), *entry.type->loads_as, std::move(entry.shape), {}};
  const std::uint64_t size = entry.end - entry.begin;
  if (loads_unchanged(*entry.type)) {
    array.bytes.resize(size);
    reader.read(array.bytes);
  } else {
    array.bytes.resize(size / static_cast<unsigned>(entry.type->bits / 8) * size_of(array.dtype));
    read_converted(reader, entry, array.bytes);
  }
  return array;
}

void check_loadable(const SafetensorsHeader& header, const std::string& path) {
  for (const SafetensorsEntry& entry : header.entries) {
    if (!entry.type->loads_as) {
      CONVOY_FAIL(checkpoint, "{}: tensor {}: no support for values of type {}", printable(path),
                  excerpt(entry.name), entry.type->name);
    }
  }
}

/// Indexes of `tensors` in the order of the file.
std::vector<std::size_t> file_order(std::span<const NamedArray> tensors) {
  std::vector<std::size_t> order(tensors.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return size_of(tensors[a].dtype) > size_of(tensors[b].dtype);
  });
  return order;
}

void check_writable(std::span<const NamedArray> tensors,
                    const std::map<std::string, std::string>& metadata) {
  std::set<std::string_view> names;
  for (const NamedArray& array : tensors) {
    check_consistent(array);
    CONVOY_DCHECK(names.insert(array.name).second, "safetensors: two tensors are named {}",
                  array.name);
  }
  for (const auto& [key, value] : metadata) {
    CONVOY_DCHECK(is_utf8(key) && is_utf8(value), "safetensors: metadata {} is not UTF-8",
                  excerpt(key));
  }
}

std::string header_bytes(std::span<const NamedArray> tensors,
                         const std::map<std::string, std::string>& metadata) {
  check_writable(tensors, metadata);
  SafetensorsHeader header{{}, metadata};
  std::uint64_t end = 0;
  for (std::size_t i : file_order(tensors)) {
    const NamedArray& array = tensors[i];
    const std::uint64_t begin = end;
    end += array.bytes.size();
    header.entries.push_back(
        {array.name, find_file_type(file_type_name(array.dtype)), array.shape, begin, end});
  }
  return safetensors_header_bytes(header);
}

}  // namespace

SafetensorsFile read_safetensors(FileReader& reader) {
  SafetensorsHeader header = read_header(reader);
  check_loadable(header, reader.path());
  SafetensorsFile file{reader.path(), {}, std::move(header.metadata)};
  file.tensors.reserve(header.entries.size());
  for (SafetensorsEntry& entry : header.entries) {
    file.tensors.push_back(read_tensor(reader, entry));
  }
  return file;
}

SafetensorsFile read_safetensors(const std::string& path) {
  FileReader reader(path);
  return read_safetensors(reader);
}

std::uint64_t safetensors_size(std::span<const NamedArray> tensors,
                               const std::map<std::string, std::string>& metadata) {
  std::uint64_t size = header_bytes(tensors, metadata).size();
  for (const NamedArray& array : tensors) size += array.bytes.size();
  return size;
}

void write_safetensors(FileWriter& writer, std::span<const NamedArray> tensors,
                       const std::map<std::string, std::string>& metadata) {
  writer.write(bytes_of(header_bytes(tensors, metadata)));
  for (std::size_t i : file_order(tensors)) writer.write(tensors[i].bytes);
}

void write_safetensors(const std::string& path, std::span<const NamedArray> tensors,
                       const std::map<std::string, std::string>& metadata) {
  IgnoreFileSizeSignal ignore_signal;
  with_room_named(path, safetensors_size(tensors, metadata), [&] {
    TemporaryPath temporary(fmt::format("{}.{}.tmp", path, ::getpid()));
    remove_all(temporary.path());
    FileWriter writer(temporary.path());
    write_safetensors(writer, tensors, metadata);
    writer.finish();
    rename_path(temporary.path(), path);
    temporary.keep();
    sync_folder(parent_of(path));
  });
}

}  // namespace convoy
