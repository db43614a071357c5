// Random numbers by counter (Philox 4x32-10): a stream is named by seed, purpose, epoch and item,
// and nothing else decides what it yields. So any thread may draw for any image at any time.
#pragma once

#include <cstdint>

#include "kernels/base/philox.h"

namespace convoy {

/// What a stream is for; streams of different purposes are independent.
enum class RandomPurpose : std::uint32_t { order = 1, augment = 2, synthetic = 3, pattern = 4 };

/// One stream of random numbers.
class DataRandom {
 public:
  DataRandom(std::uint64_t seed, RandomPurpose purpose, std::uint64_t epoch, std::uint64_t item);

  std::uint32_t next32();
  std::uint64_t next64();
  /// Uniform in [0, 1), 53 bits.
  double uniform();
  /// Uniform in [low, high).
  double uniform(double low, double high) { return low + (high - low) * uniform(); }
  /// Uniform in 0..count-1, without bias; count >= 1.
  std::int64_t below(std::int64_t count);

 private:
  void refill();

  PhiloxKey key_;
  PhiloxBlock counter_;
  PhiloxBlock block_{};
  int used_ = 4;
};

}  // namespace convoy
