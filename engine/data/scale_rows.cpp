#include "engine/data/scale_rows.h"

#include <algorithm>
#include <cstring>

#if defined(__x86_64__)
#define CONVOY_AVX2
#include <immintrin.h>
#endif

namespace convoy {
namespace {

constexpr int kRows = 16;
constexpr int kPixel = kChannels * kRows;  // bytes of one pixel of all rows
constexpr std::int32_t kHalf = 1 << (kResizeBits - 1);

typedef std::uint8_t ByteLanes __attribute__((vector_size(kRows)));

/// The lower, or the upper, halves of `a` and `b`: a byte of each in turn.
inline __attribute__((always_inline)) ByteLanes low_shuffle(ByteLanes a, ByteLanes b) {
  return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
}
inline __attribute__((always_inline)) ByteLanes high_shuffle(ByteLanes a, ByteLanes b) {
  return __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15,
                                 31);
}

/// Row r, byte b to row b, byte r: four perfect shuffles of all 256 bytes.
inline __attribute__((always_inline)) void transpose(ByteLanes (&rows)[kRows]) {
  ByteLanes shuffled[kRows];
  for (int step = 0; step < 4; ++step) {
    for (int i = 0; i < kRows / 2; ++i) {
      shuffled[2 * i] = low_shuffle(rows[i], rows[i + kRows / 2]);
      shuffled[2 * i + 1] = high_shuffle(rows[i], rows[i + kRows / 2]);
    }
    for (int i = 0; i < kRows; ++i) rows[i] = shuffled[i];
  }
}

/// Byte b of row r goes to lanes[b], lane r.
void to_lanes(const std::uint8_t* const* rows, int bytes, ByteLanes* lanes) {
  for (int b = 0; b < bytes; b += kRows) {
    const auto part = static_cast<std::size_t>(std::min(kRows, bytes - b));
    ByteLanes block[kRows] = {};
    for (int r = 0; r < kRows; ++r) {
      if (part == kRows) {
        std::memcpy(&block[r], rows[r] + b, kRows);
      } else {
        std::memcpy(&block[r], rows[r] + b, part);
      }
    }
    transpose(block);
    std::memcpy(lanes + b, block, part * sizeof(ByteLanes));
  }
}

/// The reverse, for the first `count` rows of `bytes` bytes one behind the other.
void from_lanes(const ByteLanes* lanes, int bytes, int count, std::uint8_t* out) {
  for (int b = 0; b < bytes; b += kRows) {
    const auto part = static_cast<std::size_t>(std::min(kRows, bytes - b));
    ByteLanes block[kRows] = {};
    std::memcpy(block, lanes + b, part * sizeof(ByteLanes));
    transpose(block);
    for (int r = 0; r < count; ++r) std::memcpy(out + std::int64_t{r} * bytes + b, &block[r], part);
  }
}

/// Of each lane of an output pixel: the weighted sum of its pixels, which lie kPixel bytes apart.
void scale_lanes(const std::uint8_t* in, const ResizeWeights& weights, std::uint8_t* out) {
  for (int i = 0; i < weights.count(); ++i, out += kPixel) {
    const std::int32_t* w = weights.of(i);
    const std::uint8_t* first = in + weights.first[i] * kPixel;
    for (int l = 0; l < kPixel; ++l) {
      std::int32_t sum = kHalf;
      for (int k = 0; k < weights.number[i]; ++k) sum += w[k] * first[k * kPixel + l];
      out[l] = static_cast<std::uint8_t>(std::clamp(sum >> kResizeBits, 0, 255));
    }
  }
}

#ifdef CONVOY_AVX2

/// 8 lanes at a time. By hand: gcc takes vector types apart in functions of another target.
__attribute__((target("avx2"))) void scale_lanes_avx2(const std::uint8_t* in,
                                                      const ResizeWeights& weights,
                                                      std::uint8_t* out) {
  for (int i = 0; i < weights.count(); ++i, out += kPixel) {
    const std::int32_t* w = weights.of(i);
    const std::uint8_t* first = in + weights.first[i] * kPixel;
    const int number = weights.number[i];
    for (int l = 0; l < kPixel; l += 8) {
      __m256i sum = _mm256_set1_epi32(kHalf);
      for (int k = 0; k < number; ++k) {
        const auto* bytes = reinterpret_cast<const __m128i*>(first + k * kPixel + l);
        const __m256i pixels = _mm256_cvtepu8_epi32(_mm_loadl_epi64(bytes));
        sum = _mm256_add_epi32(sum, _mm256_mullo_epi32(pixels, _mm256_set1_epi32(w[k])));
      }
      sum = _mm256_srai_epi32(sum, kResizeBits);
      const __m128i words =
          _mm_packus_epi32(_mm256_castsi256_si128(sum), _mm256_extracti128_si256(sum, 1));
      _mm_storel_epi64(reinterpret_cast<__m128i*>(out + l), _mm_packus_epi16(words, words));
    }
  }
}

#endif

auto best_scale_lanes() {
#ifdef CONVOY_AVX2
  if (__builtin_cpu_supports("avx2")) return &scale_lanes_avx2;
#endif
  return &scale_lanes;
}

}  // namespace

void scale_rows(const ImageView& source, const ResizeWeights& weights, int top, int rows,
                std::uint8_t* out) {
  const int bytes = weights.count() * kChannels;
  const int source_bytes = source.width * kChannels;
  std::vector<ByteLanes> in(static_cast<std::size_t>(source_bytes));
  std::vector<ByteLanes> scaled(static_cast<std::size_t>(bytes));
  const auto scale = best_scale_lanes();
  for (int y = 0; y < rows; y += kRows) {
    const std::uint8_t* each[kRows];
    for (int r = 0; r < kRows; ++r) each[r] = source.row(top + std::min(y + r, rows - 1));
    to_lanes(each, source_bytes, in.data());
    scale(reinterpret_cast<const std::uint8_t*>(in.data()), weights,
          reinterpret_cast<std::uint8_t*>(scaled.data()));
    from_lanes(scaled.data(), bytes, std::min(kRows, rows - y), out + std::int64_t{y} * bytes);
  }
}

}  // namespace convoy
