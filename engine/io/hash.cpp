#include "engine/io/hash.h"

#include <fmt/core.h>
#include <xxhash.h>

#include <algorithm>
#include <new>
#include <vector>

#include "engine/io/convert.h"
#include "kernels/base/error.h"

namespace convoy {

Hash128::Hash128() : state_(XXH3_createState()) {
  if (!state_) throw std::bad_alloc();
  XXH3_128bits_reset(state_.get());
}

Hash128::~Hash128() = default;
Hash128::Hash128(Hash128&&) noexcept = default;
Hash128& Hash128::operator=(Hash128&&) noexcept = default;

void Hash128::Free::operator()(XXH3_state_s* state) const {
  XXH3_freeState(state);
}

void Hash128::add(std::span<const std::byte> bytes) {
  XXH3_128bits_update(state_.get(), bytes.data(), bytes.size());
}

std::string Hash128::hex() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(state_.get());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

std::uint64_t hash64(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

std::string hash128_hex(std::span<const std::byte> bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

namespace {

/// Adds the values of `entry` as float32; other types pass through a small buffer.
void add_as_float(Hash128& hash, const NamedArray& entry) {
  if (entry.dtype == DType::f32) return hash.add(entry.bytes);
  constexpr std::size_t kChunk = 4096;
  std::vector<float> values(kChunk);
  const std::size_t size = size_of(entry.dtype);
  const std::span<const std::byte> all(entry.bytes);
  for (std::size_t at = 0; at < all.size(); at += kChunk * size) {
    const auto part = all.subspan(at, std::min(kChunk * size, all.size() - at));
    const std::span<float> out(values.data(), part.size() / size);
    to_float(entry.dtype, part, out);
    hash.add(std::as_bytes(out));
  }
}

}  // namespace

std::string weights_hash(std::span<const NamedArray> entries) {
  std::vector<const NamedArray*> sorted;
  for (const NamedArray& entry : entries) {
    if (is_floating(entry.dtype)) sorted.push_back(&entry);
  }
  std::sort(sorted.begin(), sorted.end(),
            [](const NamedArray* a, const NamedArray* b) { return a->name < b->name; });
  Hash128 hash;
  const std::byte zero{0};
  for (const NamedArray* entry : sorted) {
    hash.add(bytes_of(entry->name));
    hash.add({&zero, 1});
    add_as_float(hash, *entry);
  }
  return hash.hex();
}

}  // namespace convoy
