#include "engine/data/random.h"

#include <Random123/philox.h>

namespace convoy {
namespace {

std::uint32_t low_half(std::uint64_t v) {
  return static_cast<std::uint32_t>(v);
}
std::uint32_t high_half(std::uint64_t v) {
  return static_cast<std::uint32_t>(v >> 32);
}

/// One block whose counter is (seed, purpose): a key for streams of that purpose.
std::array<std::uint32_t, 2> key_of(std::uint64_t seed, RandomPurpose purpose,
                                    std::uint64_t epoch) {
  r123::Philox4x32::ctr_type counter = {
      {static_cast<std::uint32_t>(purpose), low_half(epoch), high_half(epoch), 0x636F6E76u}};
  r123::Philox4x32::key_type key = {{low_half(seed), high_half(seed)}};
  auto block = r123::Philox4x32()(counter, key);
  return {block[0], block[1]};
}

}  // namespace

DataRandom::DataRandom(std::uint64_t seed, RandomPurpose purpose, std::uint64_t epoch,
                       std::uint64_t item)
    : key_(key_of(seed, purpose, epoch)), counter_{0, 0, low_half(item), high_half(item)} {}

void DataRandom::refill() {
  r123::Philox4x32::ctr_type counter = {{counter_[0], counter_[1], counter_[2], counter_[3]}};
  r123::Philox4x32::key_type key = {{key_[0], key_[1]}};
  auto block = r123::Philox4x32()(counter, key);
  for (unsigned i = 0; i < 4; ++i) block_[i] = block[i];
  if (++counter_[0] == 0) ++counter_[1];
  used_ = 0;
}

std::uint32_t DataRandom::next32() {
  if (used_ == 4) refill();
  return block_[static_cast<std::size_t>(used_++)];
}

std::uint64_t DataRandom::next64() {
  std::uint64_t high = next32();
  return high << 32 | next32();
}

double DataRandom::uniform() {
  return static_cast<double>(next64() >> 11) * 0x1p-53;
}

std::int64_t DataRandom::below(std::int64_t count) {
  auto n = static_cast<std::uint64_t>(count);
  std::uint64_t uneven = (0 - n) % n;  // 2^64 mod n: values under it would favour some results
  for (;;) {
    std::uint64_t v = next64();
    if (v >= uneven) return static_cast<std::int64_t>(v % n);
  }
}

}  // namespace convoy
