// What a message of a pipeline says of itself, whatever way it takes.
#pragma once

#include <array>
#include <cstdint>

namespace convoy {

/// What a header says of a tensor. The codes are the sender's to choose: the link does not read
/// them.
struct LinkTensor {
  static constexpr int kMaxRank = 4;
  std::int32_t dtype = 0;
  std::int32_t layout = 0;
  std::int64_t rank = 0;
  std::array<std::int64_t, kMaxRank> extents{};

  bool operator==(const LinkTensor&) const = default;
};

/// What a message is about. Integers alone, no gaps: it travels as it lies.
struct LinkHeader {
  static constexpr int kMaxTensors = 32;
  std::int64_t batch = 0;
  std::int64_t micro_batch = 0;
  std::int64_t images = 0;
  std::int64_t count = 0;  ///< of tensors
  std::array<LinkTensor, kMaxTensors> tensors{};

  bool operator==(const LinkHeader&) const = default;
};

}  // namespace convoy
