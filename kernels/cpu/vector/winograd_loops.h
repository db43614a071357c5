// Winograd's F(4x4, 3x3): 4x4 results of a 3x3 convolution from 6x6 inputs with 36 products instead
// of 144. Its points are 0, +-5/8, +-3/2 and infinity: exact in float, and with less rounding error
// than the usual +-1 and +-2.
//
//     x, y            in channel blocks of CONVOY_LANES, as everywhere
//     tiles           [36][channel block][tile][lane]
//     factors         [36][panel of 2 * CONVOY_LANES outputs][input][output of the panel]
//     factor sums     [36][input block][output block][input][output]
#pragma once

#include "kernels/cpu/vector/lanes.h"

namespace convoy::cpu::CONVOY_ISA {
namespace {

using std::int64_t;

constexpr int kLanes = CONVOY_LANES;
constexpr int kIn = kWinogradIn, kOut = kWinogradOut;

constexpr float kA = 0.625f, kB = 1.5f;
constexpr float kA2 = kA * kA, kB2 = kB * kB, kA3 = kA2 * kA, kB3 = kB2 * kB;
constexpr float kN0 = 1 / (kA2 * kB2), kNa = 1 / (2 * kA2 * (kA2 - kB2)),
                kNb = 1 / (2 * kB2 * (kB2 - kA2));

CONVOY_INLINE Vector load_vector(const float* p) {
  Vector v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}

CONVOY_INLINE void store_vector(float* p, const Vector& v) {
  __builtin_memcpy(p, &v, sizeof v);
}

#if defined(__AVX512BF16__)
CONVOY_INLINE Vector load_vector(const std::uint16_t* p) {
  return load(p).v[0];
}

CONVOY_INLINE void store_vector(std::uint16_t* p, const Vector& v) {
  store(p, Row{{v}});
}
#endif

// One dimension of each transform; `to` and `from` are apart by a stride, in vectors.

// 6 -> 6: the values of x at the points, as products see them.
CONVOY_INLINE void input_line(const Vector* x, int step, Vector* v, int to) {
  const Vector x1 = x[step], x2 = x[2 * step], x3 = x[3 * step], x4 = x[4 * step];
  const Vector even_a = x4 - kB2 * x2, odd_a = x3 - kB2 * x1;
  const Vector even_b = x4 - kA2 * x2, odd_b = x3 - kA2 * x1;
  v[0] = kA2 * kB2 * x[0] - (kA2 + kB2) * x2 + x4;
  v[to] = even_a + kA * odd_a;
  v[2 * to] = even_a - kA * odd_a;
  v[3 * to] = even_b + kB * odd_b;
  v[4 * to] = even_b - kB * odd_b;
  v[5 * to] = kA2 * kB2 * x1 - (kA2 + kB2) * x3 + x[5 * step];
}

// 6 -> 4: results from products.
CONVOY_INLINE void output_line(const Vector* m, int step, Vector* y, int to) {
  const Vector sum_a = m[step] + m[2 * step], dif_a = m[step] - m[2 * step];
  const Vector sum_b = m[3 * step] + m[4 * step], dif_b = m[3 * step] - m[4 * step];
  y[0] = m[0] + sum_a + sum_b;
  y[to] = kA * dif_a + kB * dif_b;
  y[2 * to] = kA2 * sum_a + kB2 * sum_b;
  y[3 * to] = kA3 * dif_a + (kB3 * dif_b + m[5 * step]);
}

// 4 -> 6: the transpose of output_line.
CONVOY_INLINE void output_gradient_line(const Vector* y, int step, Vector* m, int to) {
  const Vector y0 = y[0], y1 = y[step], y2 = y[2 * step], y3 = y[3 * step];
  const Vector even_a = y0 + kA2 * y2, odd_a = y1 + kA2 * y3;
  const Vector even_b = y0 + kB2 * y2, odd_b = y1 + kB2 * y3;
  m[0] = y0;
  m[to] = even_a + kA * odd_a;
  m[2 * to] = even_a - kA * odd_a;
  m[3 * to] = even_b + kB * odd_b;
  m[4 * to] = even_b - kB * odd_b;
  m[5 * to] = y3;
}

// 3 -> 6.
CONVOY_INLINE void weight_line(const Vector* w, int step, Vector* u, int to) {
  const Vector w0 = w[0], w1 = w[step], w2 = w[2 * step];
  const Vector even_a = kNa * w0 + (kNa * kA2) * w2, even_b = kNb * w0 + (kNb * kB2) * w2;
  u[0] = kN0 * w0;
  u[to] = even_a + (kNa * kA) * w1;
  u[2 * to] = even_a - (kNa * kA) * w1;
  u[3 * to] = even_b + (kNb * kB) * w1;
  u[4 * to] = even_b - (kNb * kB) * w1;
  u[5 * to] = w2;
}

// 6 -> 3: the transpose of weight_line.
CONVOY_INLINE void weight_gradient_line(const Vector* u, int step, Vector* w, int to) {
  const Vector sum_a = u[step] + u[2 * step], dif_a = u[step] - u[2 * step];
  const Vector sum_b = u[3 * step] + u[4 * step], dif_b = u[3 * step] - u[4 * step];
  w[0] = kN0 * u[0] + kNa * sum_a + kNb * sum_b;
  w[to] = (kNa * kA) * dif_a + (kNb * kB) * dif_b;
  w[2 * to] = (kNa * kA2) * sum_a + (kNb * kB2) * sum_b + u[5 * step];
}

/// Where a tile lies: its image, and its first row and column.
struct Place {
  int64_t image, row, column;
};

CONVOY_INLINE Place place_of(const WinogradTiles& g, int64_t tile) {
  const int64_t across = (g.w + kOut - 1) / kOut, down = (g.h + kOut - 1) / kOut;
  const int64_t rest = tile % (across * down);
  return {tile / (across * down), rest / across * kOut, rest % across * kOut};
}

// A square of vectors from (row, column) on, zero outside of the plane.
template <int kSize, class T>
CONVOY_INLINE void read_square(const WinogradTiles& g, const T* plane, int64_t row, int64_t column,
                               Vector* square) {
  const bool inside = row >= 0 && column >= 0 && row + kSize <= g.h && column + kSize <= g.w;
  for (int i = 0; i < kSize; ++i) {
    const T* p = plane + ((row + i) * g.w + column) * kLanes;
    if (inside) {
      for (int j = 0; j < kSize; ++j) square[i * kSize + j] = load_vector(p + j * kLanes);
      continue;
    }
    const bool in_row = row + i >= 0 && row + i < g.h;
    for (int j = 0; j < kSize; ++j) {
      const bool in_plane = in_row && column + j >= 0 && column + j < g.w;
      square[i * kSize + j] = in_plane ? load_vector(p + j * kLanes) : Vector{};
    }
  }
}

CONVOY_INLINE void store_points(const Vector* points, float* tiles, int64_t stride) {
  for (int i = 0; i < kIn * kIn; ++i) store_vector(tiles + i * stride, points[i]);
}

// Calls work(offset of the plane, place, offset in a point's tiles) for all tiles of `block`.
template <class Work>
CONVOY_INLINE void each_tile(const WinogradTiles& g, int64_t block, const Work& work) {
  for (int64_t t = 0; t < g.count; ++t) {
    const Place place = place_of(g, g.first + t);
    work((place.image * g.blocks + block) * g.h * g.w * kLanes, place,
         (block * g.count + t) * kLanes);
  }
}

template <class T>
void to_tiles(const WinogradTiles& g, int64_t block, const T* x, float* tiles, int64_t stride) {
  each_tile(g, block, [&](int64_t plane, const Place& place, int64_t at) {
    Vector square[kIn * kIn], lines[kIn * kIn];
    read_square<kIn>(g, x + plane, place.row - 1, place.column - 1, square);
    for (int j = 0; j < kIn; ++j) input_line(square + j, kIn, lines + j, kIn);
    for (int i = 0; i < kIn; ++i) input_line(lines + i * kIn, 1, square + i * kIn, 1);
    store_points(square, tiles + at, stride);
  });
}

template <class T>
void to_products(const WinogradTiles& g, int64_t block, const T* dy, float* tiles, int64_t stride) {
  each_tile(g, block, [&](int64_t plane, const Place& place, int64_t at) {
    Vector square[kOut * kOut], lines[kIn * kOut], points[kIn * kIn];
    read_square<kOut>(g, dy + plane, place.row, place.column, square);
    for (int j = 0; j < kOut; ++j) output_gradient_line(square + j, kOut, lines + j, kOut);
    for (int i = 0; i < kIn; ++i) output_gradient_line(lines + i * kOut, 1, points + i * kIn, 1);
    store_points(points, tiles + at, stride);
  });
}

template <class T>
void from_tiles(const WinogradTiles& g, int64_t block, const float* tiles, int64_t stride, T* y) {
  each_tile(g, block, [&](int64_t plane, const Place& place, int64_t at) {
    Vector points[kIn * kIn], lines[kOut * kIn], square[kOut * kOut];
    for (int i = 0; i < kIn * kIn; ++i) points[i] = load_vector(tiles + at + i * stride);
    for (int j = 0; j < kIn; ++j) output_line(points + j, kIn, lines + j, kIn);
    for (int i = 0; i < kOut; ++i) output_line(lines + i * kIn, 1, square + i * kOut, 1);
    T* out = y + plane + (place.row * g.w + place.column) * kLanes;
    const int64_t rows = g.h - place.row, columns = g.w - place.column;
    for (int i = 0; i < kOut && i < rows; ++i) {
      for (int j = 0; j < kOut && j < columns; ++j) {
        store_vector(out + (i * g.w + j) * kLanes, square[i * kOut + j]);
      }
    }
  });
}

}  // namespace
}  // namespace convoy::cpu::CONVOY_ISA

/// The loops whose x and y are of T.
#define CONVOY_WINOGRAD_LOOPS(T)                                                            \
  void winograd_input(const WinogradTiles& g, std::int64_t block, const T* x, float* tiles, \
                      std::int64_t stride) {                                                \
    to_tiles(g, block, x, tiles, stride);                                                   \
  }                                                                                         \
  void winograd_output_gradient(const WinogradTiles& g, std::int64_t block, const T* dy,    \
                                float* tiles, std::int64_t stride) {                        \
    to_products(g, block, dy, tiles, stride);                                               \
  }                                                                                         \
  void winograd_output(const WinogradTiles& g, std::int64_t block, const float* tiles,      \
                       std::int64_t stride, T* y) {                                         \
    from_tiles(g, block, tiles, stride, y);                                                 \
  }
