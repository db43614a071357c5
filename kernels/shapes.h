// Sizes and attributes of kernels, in small structs instead of runs of ints.
#pragma once

#include <cstdint>

#include "kernels/base/buffer.h"
#include "kernels/base/shape.h"

namespace convoy {

/// Convolution of x (n, c, h, w) with w (k, c / groups, r, s) to y (k channels, out_h() x out_w()).
struct Conv2dShape {
  std::int64_t n, c, h, w, k, r, s;
  std::int64_t stride_h = 1, stride_w = 1;
  std::int64_t padding_h = 0, padding_w = 0;
  std::int64_t dilation_h = 1, dilation_w = 1;
  std::int64_t groups = 1;

  std::int64_t out_h() const {
    return (h + 2 * padding_h - dilation_h * (r - 1) - 1) / stride_h + 1;
  }
  std::int64_t out_w() const {
    return (w + 2 * padding_w - dilation_w * (s - 1) - 1) / stride_w + 1;
  }
  Shape x() const { return {n, c, h, w}; }
  Shape weight() const { return {k, c / groups, r, s}; }
  Shape y() const { return {n, k, out_h(), out_w()}; }
  friend bool operator==(const Conv2dShape&, const Conv2dShape&) = default;
};

/// The layouts with which a backend convolves fastest; every kernel also takes kPlain.
struct Conv2dLayouts {
  LayoutId x = kPlain;
  LayoutId weight = kPlain;
  LayoutId y = kPlain;
  /// Beside bf16, whether weights and their gradient in this layout are f32, as they are kept.
  bool full_weight = false;
};

/// y (rows, out) = x (rows, in) * w (out, in)^T + b (out).
struct LinearShape {
  std::int64_t rows, in, out;
  friend bool operator==(const LinearShape&, const LinearShape&) = default;
};

/// Batch norm over x (n, c, spatial).
struct BatchNormShape {
  std::int64_t n, c, spatial;
  Shape x() const { return {n, c, spatial, 1}; }
};

/// Statistics of each channel: mean (c) and m2 (c) = sum of (x - mean)^2 over `count` values, so
/// the biased variance is m2 / count. Running statistics are given as (mean, variance, 1).
struct BatchNormStatistics {
  ConstBuffer mean;
  ConstBuffer m2;
  double count = 1;
  /// Where given, the count: one f64 on the device, which the host has not seen.
  ConstBuffer device_count = {};
};

/// Statistics in one piece of f64: mean (channels), m2 (channels), count (1).
struct PackedStatistics {
  std::int64_t channels;
  std::int64_t values() const { return 2 * channels + 1; }
};

/// Pooling of x (n, c, h, w) with windows kernel_h x kernel_w.
struct Pool2dShape {
  std::int64_t n, c, h, w;
  std::int64_t kernel_h, kernel_w;
  std::int64_t stride_h, stride_w;
  std::int64_t padding_h = 0, padding_w = 0;
  /// Average pooling: the divisor counts padded places too (PyTorch's default).
  bool count_padding = true;

  std::int64_t out_h() const { return (h + 2 * padding_h - kernel_h) / stride_h + 1; }
  std::int64_t out_w() const { return (w + 2 * padding_w - kernel_w) / stride_w + 1; }
  Shape x() const { return {n, c, h, w}; }
  Shape y() const { return {n, c, out_h(), out_w()}; }
};

/// Softmax cross-entropy of logits (rows, classes). `scale` weights each row: 1 / rows is the mean.
struct CrossEntropyShape {
  std::int64_t rows, classes;
  double label_smoothing = 0;
  double scale = 1;
};

/// x seen as (outer, reduced, inner).
struct ReduceShape {
  std::int64_t outer, reduced, inner;
};

/// One parameter tensor of an optimizer step, all buffers of `count` elements in one layout.
struct OptimizerSlot {
  std::int64_t count;
  Buffer weight;
  ConstBuffer gradient;
  Buffer state1;  ///< SGD, LARS: momentum; AdamW: first moment. May be left out where unused.
  Buffer state2;  ///< AdamW: second moment.
  double weight_decay = 0;
  bool adapt = true;   ///< LARS: scale by the trust ratio (not for biases and batch norm).
  bool first = false;  ///< SGD: state1 holds nothing yet.
};

/// v = momentum * v + (1 - dampening) * (g + decay * w), where a slot's first step takes v = g +
/// decay * w; w -= lr * (nesterov ? g + decay * w + momentum * v : v). As torch.optim.SGD.
struct SgdArgs {
  double lr = 0, momentum = 0, dampening = 0;
  bool nesterov = false;
  double gradient_scale = 1;  ///< multiplies each gradient: clipping
};

/// g' = trust * |w| / (|g| + decay * |w| + eps) * (g + decay * w) where both norms are positive,
/// else g + decay * w; v = momentum * v + g'; w -= lr * v. You, Gitman, Ginsburg 2017
/// (arXiv:1708.03888).
struct LarsArgs {
  double lr = 0, momentum = 0, trust = 0.001, epsilon = 1e-8;
  bool nesterov = false;
  double gradient_scale = 1;
};

/// As torch.optim.AdamW; `step` counts from 1.
struct AdamwArgs {
  double lr = 0, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  std::int64_t step = 1;
  double gradient_scale = 1;
};

}  // namespace convoy
