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

/// P lanes of floats, and what goes with them, in vectors of W.
template <int P>
struct Lanes {
  static constexpr int W = P < CONVOY_LANES ? P : CONVOY_LANES;
  static constexpr int N = P / W;
  typedef float Floats __attribute__((vector_size(4 * W)));
  typedef std::int32_t Places __attribute__((vector_size(4 * W)));
  typedef std::uint8_t Bytes __attribute__((vector_size(W)));
};

template <class Vector_, class T>
CONVOY_INLINE Vector_ load_as(const T* p) {
  Vector_ v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}

/// The maxima of a window so far, and where they were found.
template <int P>
struct Best {
  using L = Lanes<P>;
  typename L::Floats value[L::N];
  typename L::Places place[L::N];

  CONVOY_INLINE explicit Best(std::int32_t first) {
    for (int i = 0; i < L::N; ++i) {
      value[i] = typename L::Floats{} - __builtin_inff();
      place[i] = typename L::Places{} + first;
    }
  }
  CONVOY_INLINE void take(const float* p, std::int32_t at) {
    for (int i = 0; i < L::N; ++i) {
      const auto v = load_as<typename L::Floats>(p + i * L::W);
      // Greater, or the first NaN.
      const typename L::Places better = (v > value[i]) | ((v != v) & (value[i] == value[i]));
      value[i] = better ? v : value[i];
      place[i] = better ? typename L::Places{} + at : place[i];
    }
  }
  CONVOY_INLINE void store(float* y, std::uint8_t* index) const {
    for (int i = 0; i < L::N; ++i) {
      const auto bytes = __builtin_convertvector(place[i], typename L::Bytes);
      __builtin_memcpy(y + i * L::W, &value[i], sizeof value[i]);
      __builtin_memcpy(index + i * L::W, &bytes, sizeof bytes);
    }
  }
};

template <int P>
void max_forward(const PoolGeometry& g, const float* x, float* y, std::uint8_t* index) {
  for (std::int64_t oh = 0; oh < g.out_h; ++oh) {
    for (std::int64_t ow = 0; ow < g.out_w; ++ow, y += P, index += P) {
      const Window v = window(g, oh, ow);
      Best<P> best(static_cast<std::int32_t>(v.row_begin * g.kernel_w + v.begin));
      for (std::int64_t r = v.row_begin; r < v.row_end; ++r) {
        const float* row = x + ((v.top + r) * g.w + v.left) * P;
        for (std::int64_t c = v.begin; c < v.end; ++c) {
          best.take(row + c * P, static_cast<std::int32_t>(r * g.kernel_w + c));
        }
      }
      best.store(y, index);
    }
  }
}

template <int P>
void max_backward(const PoolGeometry& g, const float* dy, const std::uint8_t* index, float* dx) {
  using L = Lanes<P>;
  using Floats = typename L::Floats;
  for (std::int64_t i = 0; i < g.h * g.w * P; ++i) dx[i] = 0;
  for (std::int64_t oh = 0; oh < g.out_h; ++oh) {
    for (std::int64_t ow = 0; ow < g.out_w; ++ow, dy += P, index += P) {
      const Window v = window(g, oh, ow);
      typename L::Places place[L::N];
      for (int i = 0; i < L::N; ++i) {
        const auto bytes = load_as<typename L::Bytes>(index + i * L::W);
        place[i] = __builtin_convertvector(bytes, typename L::Places);
      }
      for (std::int64_t r = v.row_begin; r < v.row_end; ++r) {
        for (std::int64_t c = v.begin; c < v.end; ++c) {
          float* p = dx + ((v.top + r) * g.w + v.left + c) * P;
          const auto at = static_cast<std::int32_t>(r * g.kernel_w + c);
          for (int i = 0; i < L::N; ++i) {
            const Floats gradient = load_as<Floats>(dy + i * L::W);
            const Floats sum =
                load_as<Floats>(p + i * L::W) + (place[i] == at ? gradient : Floats{});
            __builtin_memcpy(p + i * L::W, &sum, sizeof sum);
          }
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
