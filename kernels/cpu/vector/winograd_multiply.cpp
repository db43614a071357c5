// The products of Winograd's convolution: a small matrix product for each of the 36 points. Sums
// stay in registers; tiles are read one float at a time, factors as vectors. winograd.cpp has the
// layouts.
#include "kernels/cpu/vector/lanes.h"

namespace convoy::cpu::CONVOY_ISA {
namespace {

using std::int64_t;

constexpr int kLanes = CONVOY_LANES;
// 2 vectors wide; as many tiles as the registers hold.
constexpr int kTiles = kLanes == 16 ? 14 : kLanes == 8 ? 6 : 4;
// Rows and vectors of the sums over tiles.
constexpr int kRows = kLanes == 16 ? 8 : 4;
constexpr int kWide = kLanes == 8 ? 3 : 2;

CONVOY_INLINE Vector load_vector(const float* p) {
  Vector v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}

// Sums of so many inputs are added to each other: long sums in one go would round more.
constexpr int64_t kDepth = 128;

// kCount tiles by one panel, for a few inputs of one point.
template <int kCount>
void multiply(int64_t blocks, const float* tiles, int64_t stride, const float* factors, bool add,
              float* products) {
  Vector sums[kCount][2] = {};
  for (int64_t block = 0; block < blocks; ++block, tiles += stride) {
    const float* tile = tiles;
    for (int lane = 0; lane < kLanes; ++lane, ++tile, factors += 2 * kLanes) {
      const Vector f0 = load_vector(factors), f1 = load_vector(factors + kLanes);
#pragma GCC unroll 14
      for (int t = 0; t < kCount; ++t) {
        const Vector factor = tile[t * kLanes] - Vector{};
        sums[t][0] += factor * f0;
        sums[t][1] += factor * f1;
      }
    }
  }
#pragma GCC unroll 14
  for (int t = 0; t < kCount; ++t) {
    for (int half = 0; half < 2; ++half) {
      float* p = products + half * stride + t * kLanes;
      if (add) sums[t][half] += load_vector(p);
      __builtin_memcpy(p, &sums[t][half], sizeof(Vector));
    }
  }
}

using Multiply = void (*)(int64_t, const float*, int64_t, const float*, bool, float*);

template <int... kCounts>
struct Table {
  static constexpr Multiply all[] = {nullptr, multiply<kCounts>...};
};

#if CONVOY_LANES == 16
using Multiplies = Table<1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14>;
#elif CONVOY_LANES == 8
using Multiplies = Table<1, 2, 3, 4, 5, 6>;
#else
using Multiplies = Table<1, 2, 3, 4>;
#endif

// kRows inputs by kCount output blocks, summed over tiles.
template <int kCount>
void accumulate(int64_t count, const float* x, const float* dy, int64_t dy_stride, bool add,
                float* sums) {
  constexpr int kBlock = kLanes * kLanes;
  Vector s[kRows][kCount] = {};
  if (add) {
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i)
#pragma GCC unroll 3
      for (int j = 0; j < kCount; ++j) s[i][j] = load_vector(sums + j * kBlock + i * kLanes);
  }
  for (int64_t t = 0; t < count; ++t, x += kLanes, dy += kLanes) {
    Vector f[kCount];
#pragma GCC unroll 3
    for (int j = 0; j < kCount; ++j) f[j] = load_vector(dy + j * dy_stride);
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) {
      const Vector factor = x[i] - Vector{};
#pragma GCC unroll 3
      for (int j = 0; j < kCount; ++j) s[i][j] += factor * f[j];
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i)
#pragma GCC unroll 3
    for (int j = 0; j < kCount; ++j)
      __builtin_memcpy(sums + j * kBlock + i * kLanes, &s[i][j], sizeof(Vector));
}

}  // namespace

void winograd_multiply(int64_t count, int64_t inputs, int64_t outputs, const float* tiles,
                       const float* factors, float* products) {
  const int64_t groups = (count + kTiles - 1) / kTiles;
  const int64_t stride = count * kLanes;  // from one channel block to the next
  for (int64_t panel = 0; panel < outputs / (2 * kLanes); ++panel) {
    for (int64_t in = 0; in < inputs; in += kDepth) {
      const int64_t depth = inputs - in < kDepth ? inputs - in : kDepth;
      const float* panel_factors = factors + (panel * inputs + in) * 2 * kLanes;
      for (int64_t group = 0; group < groups; ++group) {
        const int64_t begin = group * count / groups, end = (group + 1) * count / groups;
        Multiplies::all[end - begin](depth / kLanes, tiles + in * count + begin * kLanes, stride,
                                     panel_factors, in > 0,
                                     products + 2 * panel * stride + begin * kLanes);
      }
    }
  }
}

void winograd_accumulate(int64_t count, int64_t inputs, int64_t outputs, const float* x,
                         const float* dy, bool add, float* sums) {
  const int64_t stride = count * kLanes, blocks = outputs / kLanes;
  for (int64_t in = 0; in < inputs / kLanes; ++in) {
    for (int64_t out = 0; out < blocks; out += kWide) {
      for (int row = 0; row < kLanes; row += kRows) {
        const float *a = x + in * stride + row, *b = dy + out * stride;
        float* c = sums + ((in * blocks + out) * kLanes + row) * kLanes;
        if (blocks - out >= kWide) {
          accumulate<kWide>(count, a, b, stride, add, c);
        } else if (blocks - out == 2) {
          accumulate<2>(count, a, b, stride, add, c);
        } else {
          accumulate<1>(count, a, b, stride, add, c);
        }
      }
    }
  }
}

}  // namespace convoy::cpu::CONVOY_ISA
