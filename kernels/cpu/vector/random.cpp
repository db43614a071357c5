// Philox 4x32-10 and the normal numbers that Box and Muller make of it, a vector of blocks at a
// time. Sums and products are rounded one by one, so the bits are those of any instruction set, and
// no library's: log, sine and cosine are series, right to about the last bit.
#include "kernels/cpu/vector/lanes.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace convoy::cpu::CONVOY_ISA {
namespace {

typedef std::uint64_t Words __attribute__((vector_size(4 * CONVOY_LANES)));
typedef std::int64_t Masks __attribute__((vector_size(4 * CONVOY_LANES)));

/// The product of the lower halves.
CONVOY_INLINE Words multiply(Words a, std::uint64_t b) {
  const Words all = Words{} + b;
#if defined(__AVX512F__)
  // The plain one makes gcc 12 warn (its bug 105593).
  return (Words)_mm512_maskz_mul_epu32(0xFF, (__m512i)a, (__m512i)all);
#elif defined(__AVX2__)
  return (Words)_mm256_mul_epu32((__m256i)a, (__m256i)all);
#elif defined(__SSE2__)
  return (Words)_mm_mul_epu32((__m128i)a, (__m128i)all);
#else
  return (a & 0xFFFFFFFF) * all;
#endif
}

/// Two random words of 64 bits for each of some blocks.
struct RandomWords {
  Words first, second;
};

// Only the lower halves of c and k are ever read.
CONVOY_INLINE RandomWords philox(const RandomKey& key, Words block) {
  Words c0 = block, c1 = block >> 32;
  Words c2 = Words{} + key.stream, c3 = Words{} + (key.stream >> 32);
  std::uint64_t k0 = key.seed, k1 = key.seed >> 32;
  for (int round = 0; round < 10; ++round) {
    const Words p = multiply(c0, 0xD2511F53), q = multiply(c2, 0xCD9E8D57);
    c0 = (q >> 32) ^ c1 ^ k0;
    c1 = q;
    c2 = (p >> 32) ^ c3 ^ k1;
    c3 = p;
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  const Words low = Words{} + 0xFFFFFFFF;
  return {c0 << 32 | (c1 & low), c2 << 32 | (c3 & low)};
}

/// The upper 53 bits as a number in [0, 1).
CONVOY_INLINE Wide unit_of(Words bits) {
  bits >>= 11;
  const Wide upper = (Wide)(bits >> 32 | 0x4530000000000000);  // 2^84 + 2^32 times these
  const Wide lower = (Wide)((bits & 0xFFFFFFFF) | 0x4330000000000000);
  return ((upper - (0x1p84 + 0x1p52)) + lower) * 0x1p-53;
}

CONVOY_INLINE Wide choose(Masks where, Wide yes, Wide no) {
  return (Wide)(((Masks)yes & where) | ((Masks)no & ~where));
}

template <int kTerms>
CONVOY_INLINE Wide series(const double (&factors)[kTerms], Wide z) {
  Wide sum = Wide{} + factors[kTerms - 1];
  for (int i = kTerms - 2; i >= 0; --i) sum = sum * z + factors[i];
  return sum;
}

/// Of 2^-53 to 1. x = 2^k m with m about 1, log m = 2 artanh((m - 1) / (m + 1)).
CONVOY_INLINE Wide log_of(Wide x) {
  constexpr double kLn2High = 0x1.62E42FEEp-1, kLn2Low = 0x1.A39EF35793C76p-33;
  // So that m lies between the roots of 1/2 and 2.
  const Words bits = (Words)x + (0x3FF0000000000000 - 0x3FE6A09E667F3BCD);
  const Wide k = (Wide)(bits >> 52 | 0x4330000000000000) - (0x1p52 + 1023);
  const Wide m = (Wide)((bits & 0x000FFFFFFFFFFFFF) + 0x3FE6A09E667F3BCD);
  const Wide f = m - 1.0;
  const Wide s = f / (m + 1.0);
  const Wide z = s * s;
  constexpr double kFactors[] = {2 / 3.,  2 / 5.,  2 / 7.,  2 / 9.,  2 / 11.,
                                 2 / 13., 2 / 15., 2 / 17., 2 / 19., 2 / 21.};
  // 2 s = f - s f, and s f is f^2 / 2 - s f^2 / 2: what is large is exact.
  const Wide half = 0.5 * f * f;
  return k * kLn2High - ((half - (s * (half + series(kFactors, z) * z) + k * kLn2Low)) - f);
}

struct SineCosine {
  Wide sine, cosine;
};

/// Of 0 to 2 pi.
CONVOY_INLINE SineCosine sine_cosine(Wide x) {
  constexpr double kHalfPiHigh = 0x1.921FB544p0, kHalfPiLow = 0x1.0B4611A626331p-34;
  constexpr double kSine[] = {-1 / 6.,           1 / 120.,          -1 / 5040.,
                              1 / 362880.,       -1 / 39916800.,    1 / 6227020800.,
                              -1 / 1307674368e3, 1 / 355687428096e3};
  constexpr double kCosine[] = {1 / 24.,        -1 / 720.,         1 / 40320.,       -1 / 3628800.,
                                1 / 479001600., -1 / 87178291200., 1 / 20922789888e3};
  // The nearest quarter turn; the sum's last bits hold its number.
  const Wide shifted = x * 0x1.45F306DC9C883p-1 + 0x1.8p52;
  const Wide n = shifted - 0x1.8p52;
  const Wide near = x - n * kHalfPiHigh;
  const Wide r = near - n * kHalfPiLow;
  const Wide error = (near - r) - n * kHalfPiLow;
  const Wide z = r * r, half = 0.5 * z;
  const Wide s = r + (r * z * series(kSine, z) + error * (1.0 - half));
  const Wide w = 1.0 - half;
  const Wide c = w + (((1.0 - w) - half) + (z * z * series(kCosine, z) - r * error));
  const Words turn = (Words)shifted;
  const Masks odd = (Masks)(Words{} - (turn & 1));
  const Words sine_sign = (turn & 2) << 62, cosine_sign = ((turn + 1) & 2) << 62;
  return {(Wide)((Words)choose(odd, c, s) ^ sine_sign),
          (Wide)((Words)choose(odd, s, c) ^ cosine_sign)};
}

CONVOY_INLINE Words blocks_from(std::uint64_t first) {
  Words block = Words{} + first;
  for (int lane = 0; lane < kHalfLanes; ++lane) block[lane] += static_cast<unsigned>(lane);
  return block;
}

CONVOY_INLINE void store(double* p, Wide values) {
  __builtin_memcpy(p, &values, sizeof values);
}

constexpr std::int64_t kBlocks = 64;

CONVOY_INLINE std::int64_t blocks_of(std::int64_t count) {
  const std::int64_t blocks = (count + 1) / 2;
  return blocks < kBlocks ? blocks : kBlocks;
}

}  // namespace

void random_uniform(const RandomKey& key, std::uint64_t block, std::int64_t count, double* y) {
  for (; count > 0; count -= 2 * kBlocks, block += kBlocks, y += 2 * kBlocks) {
    double first[kBlocks], second[kBlocks];
    const std::int64_t blocks = blocks_of(count);
    for (std::int64_t i = 0; i < blocks; i += kHalfLanes) {
      const RandomWords words = philox(key, blocks_from(block + static_cast<std::uint64_t>(i)));
      store(first + i, unit_of(words.first));
      store(second + i, unit_of(words.second));
    }
    for (std::int64_t i = 0; i < blocks; ++i) {
      y[2 * i] = first[i];
      if (2 * i + 1 < count) y[2 * i + 1] = second[i];
    }
  }
}

void random_normal(const RandomKey& key, std::uint64_t block, std::int64_t count, double* y) {
  for (; count > 0; count -= 2 * kBlocks, block += kBlocks, y += 2 * kBlocks) {
    double square[kBlocks], cosine[kBlocks], sine[kBlocks];
    const std::int64_t blocks = blocks_of(count);
    for (std::int64_t i = 0; i < blocks; i += kHalfLanes) {
      const RandomWords words = philox(key, blocks_from(block + static_cast<std::uint64_t>(i)));
      const SineCosine turned = sine_cosine(0x1.921FB54442D18p2 * unit_of(words.second));
      store(square + i, -2.0 * log_of(1.0 - unit_of(words.first)));
      store(cosine + i, turned.cosine);
      store(sine + i, turned.sine);
    }
    for (std::int64_t i = 0; i < blocks; ++i) {
      const double radius = __builtin_sqrt(square[i]);
      y[2 * i] = radius * cosine[i];
      if (2 * i + 1 < count) y[2 * i + 1] = radius * sine[i];
    }
  }
}

}  // namespace convoy::cpu::CONVOY_ISA
