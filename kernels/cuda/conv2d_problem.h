// Convolution as implicit matrix products over tensors whose channels lie side by side (NHWC
// activations, KRSC weights). Pure functions of the shape, for hosts and kernels.
//
//     pass              rows            columns    depth
//     forward           (n, p, q)       k          (r, s, c)
//     input gradient    (n, i, j) *     c          (tap, k)      * of one parity class of dx
//     weight gradient   k               (r, s, c)  (n, p, q)
#pragma once

#include <cstdint>
#include <optional>

#include "kernels/base/host_device.h"
#include "kernels/cuda/layout.h"
#include "kernels/shapes.h"

namespace convoy::CONVOY_GPU {

/// Extents as kernels use them; c is the stored number of channels. Offsets inside an image and
/// inside the weights fit into 32 bits, offsets across images need 64.
struct ConvProblem {
  int n, h, w, c;
  int k, r, s, p, q;
  int stride_h, stride_w, padding_h, padding_w;

  CONVOY_HOST_DEVICE int taps() const { return r * s; }
  CONVOY_HOST_DEVICE std::int64_t x_image() const { return std::int64_t{h} * w * c; }
  CONVOY_HOST_DEVICE std::int64_t y_image() const { return std::int64_t{p} * q * k; }
};

/// Rows of filters over 4 channels, lengthened by taps of zero: `lead` of them before the first.
struct FilterRows {
  int taps = 1, lead = 0, padded = 1;  ///< padded: all taps of a row; as they are by default
};

/// A convolution of images of 4 channels whose pixels are taken by two: 8 channels at half the
/// width, and filters whose rows start at an even pixel and consist of whole pairs.
struct PairedProblem {
  ConvProblem problem;
  FilterRows rows;
};

/// Where images can be taken so: 4 channels, even width and stride. Sums are those of `problem` and
/// products with zero, so that an infinite or NaN pixel right beside a filter's row counts too.
std::optional<PairedProblem> paired(const ConvProblem& problem);

/// Longest filter side: taps of a row and of a column are bits of a word, one bit more is zero.
inline constexpr int kMaxFilter = 31;

/// The problem where tensors lie in `layouts` (kPlain counts as channels last where that is the
/// same) and all stored channels are multiples of `multiple`. Absent for groups, dilation, other
/// layouts and channels, empty tensors, and extents beyond 32 bits: work of the naive kernels.
std::optional<ConvProblem> conv_problem(const Conv2dShape& shape, const Conv2dLayouts& layouts,
                                        int multiple);

/// 1x1 with stride 1: rows are places as they lie in memory, no index work.
CONVOY_HOST_DEVICE inline bool is_matrix_product(const ConvProblem& c) {
  return c.r == 1 && c.s == 1 && c.stride_h == 1 && c.stride_w == 1 && c.padding_h == 0 &&
         c.padding_w == 0;
}

/// What the rows of a product read: row (image, i, j) meets tap (a, b) in the source pixel
///     (image, origin_h + i * place_step_h + a * tap_step_h, likewise for w),
/// which counts as zero outside of source_h x source_w. Tap (a, b) is the filter's place
///     (first_r + a * step_r, first_s + b * step_s).
struct Gather {
  int places_h, places_w;
  int place_step_h, place_step_w;
  int origin_h, origin_w;
  int taps_h, taps_w;
  int tap_step_h, tap_step_w;
  int first_r, first_s, step_r, step_s;
  int source_h, source_w, channels;

  CONVOY_HOST_DEVICE int places() const { return places_h * places_w; }
  CONVOY_HOST_DEVICE int taps() const { return taps_h * taps_w; }
  CONVOY_HOST_DEVICE int depth() const { return taps() * channels; }
};

/// Of the forward pass (and of the columns of the weight gradient): places are those of y, the
/// source is x.
CONVOY_HOST_DEVICE inline Gather forward_gather(const ConvProblem& c) {
  return {c.p, c.q, c.stride_h, c.stride_w, -c.padding_h, -c.padding_w, c.r, c.s, 1, 1,
          0,   0,   1,          1,          c.h,          c.w,          c.c};
}

/// Pixels of dx fall into stride_h * stride_w classes by their remainders (row % stride_h, column %
/// stride_w). Those of a class meet the same taps, so that each is a convolution of stride 1.
CONVOY_HOST_DEVICE inline int parity_classes(const ConvProblem& c) {
  return c.stride_h * c.stride_w;
}

/// One axis of a parity class.
struct ParityAxis {
  int places, taps, first_tap, origin;
};
CONVOY_HOST_DEVICE inline ParityAxis parity_axis(int remainder, int extent, int stride, int padding,
                                                 int filter) {
  const int first = (remainder + padding) % stride;
  return {remainder < extent ? (extent - remainder - 1) / stride + 1 : 0,
          first < filter ? (filter - first - 1) / stride + 1 : 0, first,
          (remainder + padding) / stride};
}

/// Of the input gradient: places are pixels of dx of class number `index` (may be none), the source
/// is dy. Without taps the gradient is zero.
CONVOY_HOST_DEVICE inline Gather input_gradient_gather(const ConvProblem& c, int index) {
  const int row = index / c.stride_w, column = index % c.stride_w;
  const ParityAxis h = parity_axis(row, c.h, c.stride_h, c.padding_h, c.r);
  const ParityAxis w = parity_axis(column, c.w, c.stride_w, c.padding_w, c.s);
  return {h.places, w.places,    1,           1,          h.origin,   w.origin, h.taps, w.taps, -1,
          -1,       h.first_tap, w.first_tap, c.stride_h, c.stride_w, c.p,      c.q,    c.k};
}

/// The pixel of dx at place (i, j) of class `index`, as an offset inside an image.
CONVOY_HOST_DEVICE inline int parity_pixel(const ConvProblem& c, int index, int i, int j) {
  return ((i * c.stride_h + index / c.stride_w) * c.w + j * c.stride_w + index % c.stride_w) * c.c;
}

/// Depth of a product in `count` parts of `length` (the last may be shorter).
struct DepthSplit {
  int count, length;
};

/// How a weight gradient of m x n with `depth` products is split: so that no part sums more than
/// kLongestSum in float (while a grid can have as many parts), and so that small gradients fill a
/// GPU. A function of the shape alone: another split would give other bits.
inline constexpr int kLongestSum = 4096;
DepthSplit split_depth(std::int64_t m, std::int64_t n, std::int64_t depth, int tile_m, int tile_n);

/// Tiles of `size` that cover `extent`.
CONVOY_HOST_DEVICE inline int tiles_of(int extent, int size) {
  return (extent + size - 1) / size;
}

}  // namespace convoy::CONVOY_GPU
