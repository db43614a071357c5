// Matrix products without a library, and the unrolling of images for them. A tile is computed from
// packed panels: kTileRows x kTileColumns sums stay in registers while the depth runs.
//
//     pack:  A as panels of kTileRows rows, B as panels of kTileColumns columns, depth-major both,
//     padded with zeros at the edges
#include "kernels/cpu/vector/lanes.h"

namespace convoy::cpu::CONVOY_ISA {
namespace {

// 2 vectors wide; as many rows as the registers hold.
constexpr int kTileRows = CONVOY_LANES == 16 ? 12 : CONVOY_LANES == 8 ? 6 : 4;
constexpr int kTileColumns = 2 * CONVOY_LANES;
static_assert(kGemmRows % kTileRows == 0 && kGemmColumns % kTileColumns == 0);

CONVOY_INLINE std::int64_t lesser(std::int64_t a, std::int64_t b) {
  return a < b ? a : b;
}

// panels[p][k][i] = a(p * width + i, k), where `stride` leads from one i to the next.
void pack(const float* a, std::int64_t stride, std::int64_t depth_stride, std::int64_t count,
          std::int64_t depth, int width, float* panels) {
  for (std::int64_t begin = 0; begin < count; begin += width) {
    const std::int64_t filled = lesser(width, count - begin);
    for (std::int64_t k = 0; k < depth; ++k, panels += width) {
      const float* p = a + begin * stride + k * depth_stride;
      for (std::int64_t i = 0; i < filled; ++i) panels[i] = p[i * stride];
      for (std::int64_t i = filled; i < width; ++i) panels[i] = 0;
    }
  }
}

struct Tile {
  float c[kTileRows * kTileColumns];
};

void multiply(std::int64_t depth, const float* a, const float* b, Tile& tile) {
  Vector sums[kTileRows][2] = {};
  for (std::int64_t k = 0; k < depth; ++k, a += kTileRows, b += kTileColumns) {
    Vector b0, b1;
    __builtin_memcpy(&b0, b, sizeof b0);
    __builtin_memcpy(&b1, b + CONVOY_LANES, sizeof b1);
#pragma GCC unroll 12
    for (int i = 0; i < kTileRows; ++i) {
      const Vector factor = Vector{} + a[i];
      sums[i][0] += factor * b0;
      sums[i][1] += factor * b1;
    }
  }
  __builtin_memcpy(tile.c, sums, sizeof sums);
}

void write(const Tile& tile, std::int64_t rows, std::int64_t columns, bool add, float* c,
           std::int64_t ldc) {
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) {
      const float value = tile.c[i * kTileColumns + j];
      c[i * ldc + j] = add ? c[i * ldc + j] + value : value;
    }
  }
}

void multiply_panels(std::int64_t m, std::int64_t n, std::int64_t depth, const float* a,
                     const float* b, bool add, float* c, std::int64_t ldc) {
  Tile tile;
  for (std::int64_t j = 0; j < n; j += kTileColumns) {
    for (std::int64_t i = 0; i < m; i += kTileRows) {
      multiply(depth, a + i * depth, b + j * depth, tile);
      write(tile, lesser(kTileRows, m - i), lesser(kTileColumns, n - j), add, c + i * ldc + j, ldc);
    }
  }
}

}  // namespace

void gemm_tile(std::int64_t m, std::int64_t n, std::int64_t k, GemmOperand a, GemmOperand b,
               bool add, float* c, std::int64_t ldc, float* pack_space) {
  float* packed_b = pack_space + kGemmRows * kGemmDepth;
  for (std::int64_t begin = 0; begin < k; begin += kGemmDepth) {
    const std::int64_t depth = lesser(kGemmDepth, k - begin);
    pack(a.data + begin * a.column_stride, a.row_stride, a.column_stride, m, depth, kTileRows,
         pack_space);
    pack(b.data + begin * b.row_stride, b.column_stride, b.row_stride, n, depth, kTileColumns,
         packed_b);
    multiply_panels(m, n, depth, pack_space, packed_b, add || begin > 0, c, ldc);
  }
}

// Nothing but multiply-adds in registers, enough of them side by side to hide their latency: what
// the core can do at most. Returns their number of operations, two each.
double multiply_add(std::int64_t rounds, float factor, float summand, float* result) {
  constexpr int kChains = 12;
  const Vector a = Vector{} + factor, b = Vector{} + summand;
  Vector chains[kChains];
  for (int j = 0; j < kChains; ++j)
    chains[j] = a * static_cast<float>(j);  // equal ones would be one
  for (std::int64_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 12
    for (int j = 0; j < kChains; ++j) chains[j] = chains[j] * a + b;
  }
  Vector sum = {};
  for (int j = 0; j < kChains; ++j) sum += chains[j];
  *result = sum[0];
  return 2.0 * kChains * CONVOY_LANES * static_cast<double>(rounds);
}

// columns (r, s, out_h, out_w) of one channel x (h, w); places outside the image are zero.
void unroll(const UnrollGeometry& g, const float* x, float* columns) {
  for (std::int64_t r = 0; r < g.r; ++r) {
    for (std::int64_t s = 0; s < g.s; ++s) {
      for (std::int64_t oh = 0; oh < g.out_h; ++oh, columns += g.out_w) {
        const std::int64_t ih = oh * g.stride_h - g.padding_h + r * g.dilation_h;
        const bool inside = ih >= 0 && ih < g.h;
        for (std::int64_t ow = 0; ow < g.out_w; ++ow) {
          const std::int64_t iw = ow * g.stride_w - g.padding_w + s * g.dilation_w;
          columns[ow] = inside && iw >= 0 && iw < g.w ? x[ih * g.w + iw] : 0;
        }
      }
    }
  }
}

// The reverse of unroll: each place of x sums its columns.
void roll(const UnrollGeometry& g, const float* columns, float* x) {
  for (std::int64_t i = 0; i < g.h * g.w; ++i) x[i] = 0;
  for (std::int64_t r = 0; r < g.r; ++r) {
    for (std::int64_t s = 0; s < g.s; ++s) {
      for (std::int64_t oh = 0; oh < g.out_h; ++oh, columns += g.out_w) {
        const std::int64_t ih = oh * g.stride_h - g.padding_h + r * g.dilation_h;
        if (ih < 0 || ih >= g.h) continue;
        for (std::int64_t ow = 0; ow < g.out_w; ++ow) {
          const std::int64_t iw = ow * g.stride_w - g.padding_w + s * g.dilation_w;
          if (iw >= 0 && iw < g.w) x[ih * g.w + iw] += columns[ow];
        }
      }
    }
  }
}

}  // namespace convoy::cpu::CONVOY_ISA
