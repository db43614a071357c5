// Pooling of one image and channel block: x (h, w, period), y (out_h, out_w, period). The lanes of
// a block are computed side by side; the plain layout is a block of one channel.
#include "kernels/cpu/vector/lanes.h"

namespace convoy::cpu::CONVOY_ISA {
namespace {

/// The part of a window that lies inside the image, in window coordinates.
struct Window {
  std::int64_t top, left;                       // of the window, in the image; may be negative
  std::int64_t row_begin, row_end, begin, end;  // inside the window
};

CONVOY_INLINE std::int64_t lesser(std::int64_t a, std::int64_t b) {
  return a < b ? a : b;
}

CONVOY_INLINE Window window(const PoolGeometry& g, std::int64_t oh, std::int64_t ow) {
  Window v;
  v.top = oh * g.stride_h - g.padding_h;
  v.left = ow * g.stride_w - g.padding_w;
  v.row_begin = v.top < 0 ? -v.top : 0;
  v.row_end = lesser(g.kernel_h, g.h - v.top);
  v.begin = v.left < 0 ? -v.left : 0;
  v.end = lesser(g.kernel_w, g.w - v.left);
  return v;
}

template <int P>
void max_forward(const PoolGeometry& g, const float* x, float* y, std::uint8_t* index) {
  for (std::int64_t oh = 0; oh < g.out_h; ++oh) {
    for (std::int64_t ow = 0; ow < g.out_w; ++ow) {
      const Window v = window(g, oh, ow);
      float best[P];
      std::int32_t where[P];
      for (int l = 0; l < P; ++l) {
        best[l] = -__builtin_inff();
        where[l] = static_cast<std::int32_t>(v.row_begin * g.kernel_w + v.begin);
      }
      for (std::int64_t r = v.row_begin; r < v.row_end; ++r) {
        for (std::int64_t c = v.begin; c < v.end; ++c) {
          const float* p = x + ((v.top + r) * g.w + v.left + c) * P;
          const auto place = static_cast<std::int32_t>(r * g.kernel_w + c);
          for (int l = 0; l < P; ++l) {
            // Greater, or the first NaN; & and | keep the loop free of branches.
            const bool take = (p[l] > best[l]) | ((p[l] != p[l]) & (best[l] == best[l]));
            best[l] = take ? p[l] : best[l];
            where[l] = take ? place : where[l];
          }
        }
      }
      const std::int64_t o = (oh * g.out_w + ow) * P;
      for (int l = 0; l < P; ++l) y[o + l] = best[l];
      for (int l = 0; l < P; ++l) index[o + l] = static_cast<std::uint8_t>(where[l]);
    }
  }
}

template <int P>
void max_backward(const PoolGeometry& g, const float* dy, const std::uint8_t* index, float* dx) {
  for (std::int64_t i = 0; i < g.h * g.w * P; ++i) dx[i] = 0;
  for (std::int64_t oh = 0; oh < g.out_h; ++oh) {
    for (std::int64_t ow = 0; ow < g.out_w; ++ow) {
      const Window v = window(g, oh, ow);
      const std::int64_t o = (oh * g.out_w + ow) * P;
      std::int32_t where[P];
      for (int l = 0; l < P; ++l) where[l] = index[o + l];
      for (std::int64_t r = v.row_begin; r < v.row_end; ++r) {
        for (std::int64_t c = v.begin; c < v.end; ++c) {
          float* p = dx + ((v.top + r) * g.w + v.left + c) * P;
          const auto place = static_cast<std::int32_t>(r * g.kernel_w + c);
          for (int l = 0; l < P; ++l) p[l] += where[l] == place ? dy[o + l] : 0.0f;
        }
      }
    }
  }
}

CONVOY_INLINE double divisor(const PoolGeometry& g, const Window& v) {
  if (!g.count_padding) {
    return static_cast<double>((v.row_end - v.row_begin) * (v.end - v.begin));
  }
  // A window that ends beyond the padding counts only what is image or padding.
  const std::int64_t rows = lesser(g.kernel_h, g.h + g.padding_h - v.top);
  const std::int64_t columns = lesser(g.kernel_w, g.w + g.padding_w - v.left);
  return static_cast<double>(rows * columns);
}

template <int P>
void avg_forward(const PoolGeometry& g, const float* x, float* y) {
  for (std::int64_t oh = 0; oh < g.out_h; ++oh) {
    for (std::int64_t ow = 0; ow < g.out_w; ++ow) {
      const Window v = window(g, oh, ow);
      double sum[P] = {};
      for (std::int64_t r = v.row_begin; r < v.row_end; ++r) {
        for (std::int64_t c = v.begin; c < v.end; ++c) {
          const float* p = x + ((v.top + r) * g.w + v.left + c) * P;
          for (int l = 0; l < P; ++l) sum[l] += static_cast<double>(p[l]);
        }
      }
      const double places = divisor(g, v);
      float* target = y + (oh * g.out_w + ow) * P;
      for (int l = 0; l < P; ++l) target[l] = static_cast<float>(sum[l] / places);
    }
  }
}

template <int P>
void avg_backward(const PoolGeometry& g, const float* dy, float* dx) {
  for (std::int64_t i = 0; i < g.h * g.w * P; ++i) dx[i] = 0;
  for (std::int64_t oh = 0; oh < g.out_h; ++oh) {
    for (std::int64_t ow = 0; ow < g.out_w; ++ow) {
      const Window v = window(g, oh, ow);
      const float* source = dy + (oh * g.out_w + ow) * P;
      const double places = divisor(g, v);
      float share[P];
      for (int l = 0; l < P; ++l) {
        share[l] = static_cast<float>(static_cast<double>(source[l]) / places);
      }
      for (std::int64_t r = v.row_begin; r < v.row_end; ++r) {
        for (std::int64_t c = v.begin; c < v.end; ++c) {
          float* p = dx + ((v.top + r) * g.w + v.left + c) * P;
          for (int l = 0; l < P; ++l) p[l] += share[l];
        }
      }
    }
  }
}

}  // namespace

void max_pool_forward(const PoolGeometry& shape, int period, const float* x, float* y,
                      std::uint8_t* index) {
  auto run = period == 16 ? &max_forward<16> : period == 8 ? &max_forward<8> : &max_forward<1>;
  run(shape, x, y, index);
}

void max_pool_backward(const PoolGeometry& shape, int period, const float* dy,
                       const std::uint8_t* index, float* dx) {
  auto run = period == 16 ? &max_backward<16> : period == 8 ? &max_backward<8> : &max_backward<1>;
  run(shape, dy, index, dx);
}

void avg_pool_forward(const PoolGeometry& shape, int period, const float* x, float* y) {
  auto run = period == 16 ? &avg_forward<16> : period == 8 ? &avg_forward<8> : &avg_forward<1>;
  run(shape, x, y);
}

void avg_pool_backward(const PoolGeometry& shape, int period, const float* dy, float* dx) {
  auto run = period == 16 ? &avg_backward<16> : period == 8 ? &avg_backward<8> : &avg_backward<1>;
  run(shape, dy, dx);
}

}  // namespace convoy::cpu::CONVOY_ISA
