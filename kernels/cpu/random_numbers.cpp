#include "kernels/base/random_numbers.h"

#include <algorithm>

#include "kernels/cpu/isa.h"
#include "kernels/cpu/parallel.h"

namespace convoy {
namespace {

constexpr std::int64_t kChunk = 512;

using Draw = decltype(cpu::VectorTable::random_normal);

// Numbers begin ... begin + count - 1 of y; `begin` is even, as a block of Philox makes two.
template <class T>
void draw_range(const cpu::RandomKey& key, Draw draw, bool symmetric, double factor,
                std::int64_t begin, std::int64_t count, T* y) {
  double numbers[kChunk];
  for (std::int64_t at = begin; at < begin + count; at += kChunk) {
    const std::int64_t size = std::min(kChunk, begin + count - at);
    draw(key, static_cast<std::uint64_t>(at / 2), size, numbers);
    if (symmetric) {
      for (std::int64_t i = 0; i < size; ++i) numbers[i] = 2 * numbers[i] - 1;
    }
    for (std::int64_t i = 0; i < size; ++i) y[at + i] = static_cast<T>(numbers[i] * factor);
  }
}

}  // namespace

template <class T>
void draw_numbers(std::uint64_t seed, std::uint64_t stream, RandomKind kind, double factor,
                  std::int64_t count, T* y) {
  const cpu::VectorTable& loops = cpu::loops();  // may throw: not among the threads
  const Draw draw = kind == RandomKind::normal ? loops.random_normal : loops.random_uniform;
  const bool symmetric = kind == RandomKind::symmetric;
  cpu::parallel_parts(count, [=](std::int64_t, std::int64_t begin, std::int64_t size) {
    draw_range(cpu::RandomKey{seed, stream}, draw, symmetric, factor, begin, size, y);
  });
}

template void draw_numbers(std::uint64_t, std::uint64_t, RandomKind, double, std::int64_t, float*);
template void draw_numbers(std::uint64_t, std::uint64_t, RandomKind, double, std::int64_t, double*);

}  // namespace convoy
