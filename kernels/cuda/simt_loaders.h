// How operands of fp32 products come from global memory: a thread has one vector of four values of
// a tile per step of depth. Made once per thread; load() gives the vector of the next step, zeros
// for what does not exist; store() puts it into shared memory as [depth][row or column].
//
//     DenseRows       along depth    weights, activations of 1x1 filters, x and w of linear
//     TapRows         along depth    activations gathered by taps
//     DenseColumns    across depth   gradients; weights and activations of 1x1 filters
//     TapColumns      across depth   weights by taps (input gradient)
//     PlaceColumns    across depth   activations gathered by places (weight gradient)
#pragma once

#include "kernels/cuda/conv2d_problem.h"
#include "kernels/cuda/simt_tile.h"

namespace convoy::CONVOY_GPU {

/// Two threads per row, four steps of depth each: stores turn them.
template <int kSize>
struct AlongDepth {
  static __device__ __forceinline__ int row() { return static_cast<int>(threadIdx.x) / 2; }
  static __device__ __forceinline__ int depth() { return static_cast<int>(threadIdx.x) % 2 * 4; }
  static __device__ __forceinline__ void store(const Float4& values,
                                               float (&target)[kDepthStep][kSize + 4]) {
    CONVOY_UNROLL
    for (int i = 0; i < 4; ++i) target[depth() + i][row()] = values[i];
  }
};

/// One step of depth and four columns per thread.
template <int kSize>
struct AcrossDepth {
  static __device__ __forceinline__ int depth() {
    return static_cast<int>(threadIdx.x) / (kSize / 4);
  }
  static __device__ __forceinline__ int column() {
    return static_cast<int>(threadIdx.x) % (kSize / 4) * 4;
  }
  static __device__ __forceinline__ void store(const Float4& values,
                                               float (&target)[kDepthStep][kSize + 4]) {
    store_vector(&target[depth()][column()], values);
  }
};

/// A matrix whose rows are `pitch` floats apart.
struct Dense {
  const float* data;
  int rows, depth, pitch;
};

template <int kSize>
class DenseRows : public AlongDepth<kSize> {
 public:
  __device__ __forceinline__ DenseRows(const Dense& m, int first) {
    const int row = first + this->row(), depth = this->depth();
    left_ = row < m.rows ? m.depth - depth : 0;
    at_ = m.data + std::int64_t{row} * m.pitch + depth;
  }
  __device__ __forceinline__ Float4 load() {
    const Float4 values = left_ > 0 ? load_vector<4>(at_) : Float4{};
    at_ += kDepthStep;
    left_ -= kDepthStep;
    return values;
  }

 private:
  const float* at_;
  int left_;
};

/// A matrix of `depth` rows, `pitch` apart, of which steps begin..end-1 of depth are wanted.
struct DenseTurned {
  const float* data;
  int columns, pitch, begin, end;
};

template <int kSize>
class DenseColumns : public AcrossDepth<kSize> {
 public:
  __device__ __forceinline__ DenseColumns(const DenseTurned& m, int first) : pitch_(m.pitch) {
    const int column = first + this->column(), depth = m.begin + this->depth();
    left_ = column < m.columns ? m.end - depth : 0;
    at_ = m.data + std::int64_t{depth} * m.pitch + column;
  }
  __device__ __forceinline__ Float4 load() {
    const Float4 values = left_ > 0 ? load_vector<4>(at_) : Float4{};
    at_ += std::int64_t{kDepthStep} * pitch_;
    left_ -= kDepthStep;
    return values;
  }

 private:
  const float* at_;
  int left_, pitch_;
};

/// Bit a: a place that starts at coordinate `origin` meets the source in its tap a.
__device__ __forceinline__ unsigned valid_taps(int origin, int taps, int step, int extent) {
  unsigned mask = 0;
  for (int a = 0; a < taps; ++a) {
    if (static_cast<unsigned>(origin + a * step) < static_cast<unsigned>(extent)) mask |= 1u << a;
  }
  return mask;
}

/// Rows (image, i, j) of `images`; depth (tap, channel). `g` must live as long as the loader: what
/// all threads share stays there, where it takes no registers.
template <int kSize>
class TapRows : public AlongDepth<kSize> {
 public:
  __device__ __forceinline__ TapRows(const Gather& g, const float* source, int images, int first)
      : g_(g), channel_(this->depth()) {
    const int row = first + this->row();
    const int image = row / g.places(), place = row % g.places();
    const int h = g.origin_h + place / g.places_w * g.place_step_h;
    const int w = g.origin_w + place % g.places_w * g.place_step_w;
    image_ = source + std::int64_t{image} * g.source_h * g.source_w * g.channels;
    offset_ = (h * g.source_w + w) * g.channels + channel_;
    rows_ = image < images ? valid_taps(h, g.taps_h, g.tap_step_h, g.source_h) : 0;
    all_columns_ = valid_taps(w, g.taps_w, g.tap_step_w, g.source_w);
    columns_ = all_columns_;
    skip_taps();
  }
  __device__ __forceinline__ Float4 load() {
    const bool valid = (rows_ & columns_ & 1u) != 0;
    const Float4 values = valid ? load_vector<4>(image_ + offset_) : Float4{};
    channel_ += kDepthStep;
    offset_ += kDepthStep;
    skip_taps();
    return values;
  }

 private:
  // Channels past the last one are those of the next tap.
  __device__ __forceinline__ void skip_taps() {
    while (channel_ >= g_.channels) {
      channel_ -= g_.channels;
      offset_ += (g_.tap_step_w - 1) * g_.channels;
      columns_ >>= 1;
      if (++tap_w_ < g_.taps_w) continue;
      tap_w_ = 0;
      columns_ = all_columns_;
      rows_ >>= 1;
      offset_ += (g_.tap_step_h * g_.source_w - g_.taps_w * g_.tap_step_w) * g_.channels;
    }
  }

  const Gather& g_;
  const float* image_;
  unsigned rows_, columns_, all_columns_;  // valid taps; bit 0 is the next one
  int offset_, channel_, tap_w_ = 0;
};

/// Weights (k, r, s, c) as depth (tap, k) and columns c.
template <int kSize>
class TapColumns : public AcrossDepth<kSize> {
 public:
  __device__ __forceinline__ TapColumns(const Gather& g, const ConvProblem& c, const float* weights,
                                        int first)
      : g_(g), c_(c), filter_(this->depth()) {
    const int column = first + this->column();
    rows_left_ = column < c.c ? g.taps_h : 0;
    at_ = weights + (g.first_r * c.s + g.first_s) * c.c + column + filter_ * filter_size();
    skip_taps();
  }
  __device__ __forceinline__ Float4 load() {
    const Float4 values = rows_left_ > 0 ? load_vector<4>(at_) : Float4{};
    filter_ += kDepthStep;
    at_ += kDepthStep * filter_size();
    skip_taps();
    return values;
  }

 private:
  __device__ __forceinline__ int filter_size() const { return c_.taps() * c_.c; }
  // Filters past the last one are those of the next tap.
  __device__ __forceinline__ void skip_taps() {
    while (filter_ >= c_.k) {
      filter_ -= c_.k;
      at_ += g_.step_s * c_.c - c_.k * filter_size();
      if (++tap_w_ < g_.taps_w) continue;
      tap_w_ = 0;
      --rows_left_;
      at_ += (g_.step_r * c_.s - g_.taps_w * g_.step_s) * c_.c;
    }
  }

  const Gather& g_;
  const ConvProblem& c_;
  const float* at_;
  int filter_, rows_left_, tap_w_ = 0;
};

/// x as depth (image, p, q) in begin..end-1 and columns (r, s, c).
template <int kSize>
class PlaceColumns : public AcrossDepth<kSize> {
 public:
  __device__ __forceinline__ PlaceColumns(const ConvProblem& c, const float* x, int begin, int end,
                                          int first)
      : c_(c) {
    const int column = first + this->column(), depth = begin + this->depth();
    left_ = column < c.taps() * c.c ? end - depth : 0;
    const int image = depth / (c.p * c.q), tap = column / c.c;
    p_ = depth / c.q % c.p;
    q_ = depth % c.q;
    tap_h_ = tap / c.s - c.padding_h;
    w_ = q_ * c.stride_w + tap % c.s - c.padding_w;
    image_ = x + image * c.x_image() + column % c.c;
  }
  __device__ __forceinline__ Float4 load() {
    const int h = p_ * c_.stride_h + tap_h_, w = w_;
    const bool valid = left_ > 0 && static_cast<unsigned>(h) < static_cast<unsigned>(c_.h) &&
                       static_cast<unsigned>(w) < static_cast<unsigned>(c_.w);
    const Float4 values = valid ? load_vector<4>(image_ + (h * c_.w + w) * c_.c) : Float4{};
    left_ -= kDepthStep;
    q_ += kDepthStep;
    w_ += kDepthStep * c_.stride_w;
    skip_rows();
    return values;
  }

 private:
  __device__ __forceinline__ void skip_rows() {
    while (q_ >= c_.q) {
      q_ -= c_.q;
      w_ -= c_.q * c_.stride_w;
      if (++p_ < c_.p) continue;
      p_ = 0;
      image_ += c_.x_image();
    }
  }

  const ConvProblem& c_;
  const float* image_;  // with the column's channel
  int left_, p_, q_, tap_h_, w_;
};

}  // namespace convoy::CONVOY_GPU
