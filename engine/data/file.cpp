#include "engine/data/file.h"

#include <algorithm>

#include "engine/io/file.h"
#include "engine/io/text.h"
#include "kernels/base/error.h"

namespace convoy {
namespace {

Bytes read_bytes(InputFile& file, std::uint64_t count) {
  Bytes bytes(count);
  bytes.resize(file.read(std::as_writable_bytes(std::span(bytes))));
  return bytes;
}

}  // namespace

Bytes read_file(const std::string& path, std::int64_t most) {
  InputFile file(path, ErrorKind::data);
  if (file.size() > static_cast<std::uint64_t>(most)) {
    CONVOY_FAIL(data, "{}: too large: {} bytes, at most {} expected", printable(path), file.size(),
                most);
  }
  return read_bytes(file, file.size());
}

Bytes read_start(const std::string& path, std::int64_t count) {
  InputFile file(path, ErrorKind::data);
  return read_bytes(file, std::min(static_cast<std::uint64_t>(count), file.size()));
}

}  // namespace convoy
