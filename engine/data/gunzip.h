// Decompression in pieces: the caller asks for as many bytes as the header in them allows.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "engine/data/file.h"

namespace convoy {

/// Whether the bytes start as a gzip file does.
bool is_gzip(const Bytes& bytes);

/// Reads the content of a plain or gzipped file from front to back.
class ContentReader {
 public:
  /// `bytes` must outlive the reader; `name` goes into errors.
  ContentReader(const Bytes& bytes, std::string name);
  ~ContentReader();
  ContentReader(const ContentReader&) = delete;
  ContentReader& operator=(const ContentReader&) = delete;

  /// The next `count` bytes, fewer where the content ends. Memory grows with what is really there.
  Bytes read(std::int64_t count);
  /// Whether nothing follows; checks gzip's own checksum.
  bool at_end();

 private:
  class Inflater;

  const Bytes& bytes_;
  std::string name_;
  std::size_t at_ = 0;
  std::unique_ptr<Inflater> inflater_;
};

}  // namespace convoy
