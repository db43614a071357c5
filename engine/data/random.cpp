#include "engine/data/random.h"

#include "kernels/base/philox.h"

namespace convoy {
namespace {

/// One block whose counter is (seed, purpose): a key for streams of that purpose.
PhiloxKey key_of(std::uint64_t seed, RandomPurpose purpose, std::uint64_t epoch) {
  const PhiloxBlock block =
      philox({static_cast<std::uint32_t>(purpose), low_half(epoch), high_half(epoch), 0x636F6E76u},
             {low_half(seed), high_half(seed)});
  return {block[0], block[1]};
}

}  // namespace

DataRandom::DataRandom(std::uint64_t seed, RandomPurpose purpose, std::uint64_t epoch,
                       std::uint64_t item)
    : key_(key_of(seed, purpose, epoch)), counter_{0, 0, low_half(item), high_half(item)} {}

void DataRandom::refill() {
  block_ = philox(counter_, key_);
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
  return unit_of(next64());
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
