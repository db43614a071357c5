// Pieces of a stream's scratch memory.
#pragma once

#include <cstddef>

#include "kernels/base/buffer.h"
#include "kernels/base/stream.h"

namespace convoy::cuda::vendor {

/// Hands out pieces aligned to 256 bytes; `bytes` of each are summed by the caller beforehand.
class Scratch {
 public:
  static std::size_t padded(std::size_t bytes) { return (bytes + 255) / 256 * 256; }

  Scratch(Stream& stream, std::size_t bytes) : next_(static_cast<char*>(stream.scratch(bytes))) {}
  void* take(std::size_t bytes) {
    void* const piece = next_;
    next_ += padded(bytes);
    return piece;
  }

 private:
  char* next_;
};

}  // namespace convoy::cuda::vendor
