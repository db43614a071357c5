// Ops on tensors: each checks its operands, runs a kernel of their device, and is recorded for
// backward. Operands of one call must be on one device and of one floating type, else `usage`.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/tensor/tensor.h"
#include "kernels/elementwise_list.h"

namespace convoy {

class Communicator;

/// Height and width; a single number stands for both.
struct Pair {
  std::int64_t h, w;
  Pair(std::int64_t both) : h(both), w(both) {}
  Pair(std::int64_t height, std::int64_t width) : h(height), w(width) {}
};

struct Conv2dOptions {
  Pair stride = 1;
  Pair padding = 0;
  Pair dilation = 1;
  std::int64_t groups = 1;
};

/// x (N, C, H, W) with weight (K, C / groups, R, S) and, where defined, bias (K): (N, K, P, Q).
Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
              const Conv2dOptions& options = {});

/// x (rows, in) with weight (out, in) and, where defined, bias (out): (rows, out).
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = {});

/// When batch norm's running statistics change: after each call, once for all calls of a batch, or
/// never (then they normalise too). Whose values are normalised together is the group's matter:
/// `sync` is micro with a group, `deferred+sync` is deferred with one.
enum class BatchNormMode { micro, deferred, frozen };

/// Statistics collected over the micro-batches of one batch (mode `deferred`); undefined: none yet.
struct BatchNormPending {
  Tensor packed;
};

struct BatchNormOptions {
  bool training = true;
  BatchNormMode mode = BatchNormMode::micro;
  double momentum = 0.1;
  double epsilon = 1e-5;
  bool relu = false;
  /// Whether this call may change running statistics (not when forward is run once more).
  bool update_running = true;
  /// Collects in mode `deferred`.
  BatchNormPending* pending = nullptr;
  /// Normalises over the values of all ranks in training. Every rank makes the same calls, forward
  /// and backward, those without images too; collectives go to the current stream, so no other
  /// thread or stream may use this communicator meanwhile. It outlives backward.
  Communicator* group = nullptr;
};

/// x (N, C, ...) normalised by the statistics of this call (training) or the running ones (else,
/// and in mode `frozen`), times weight, plus bias, plus `residual` where defined, then ReLU where
/// asked. Biased variance normalises, unbiased is stored. `usage` for one value per channel in
/// training, with a group at the next wait. Without any values running statistics stay as they are.
Tensor batch_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, Tensor running_mean,
                  Tensor running_var, const BatchNormOptions& options = {},
                  const Tensor& residual = {});

/// Adds what `pending` has collected to the running statistics, once, and empties it.
void commit_batch_norm(BatchNormPending& pending, Tensor running_mean, Tensor running_var,
                       double momentum);

struct Pool2dOptions {
  Pair kernel = 2;
  std::optional<Pair> stride;  // the kernel
  Pair padding = 0;
  bool count_padding = true;  // average pooling: divide by the whole window
};

/// Largest value of each window. At most 256 places in a window.
Tensor max_pool2d(const Tensor& x, const Pool2dOptions& options);
Tensor avg_pool2d(const Tensor& x, const Pool2dOptions& options);
/// Mean over height and width: (N, C, 1, 1).
Tensor global_avg_pool2d(const Tensor& x);

#define CONVOY_DECLARE_UNARY(name, value, derivative) Tensor name(const Tensor& x);
CONVOY_UNARY_LIST(CONVOY_DECLARE_UNARY)
#undef CONVOY_DECLARE_UNARY

#define CONVOY_DECLARE_BINARY(name, value, by_a, by_b) \
  Tensor name(const Tensor& a, const Tensor& b);
CONVOY_BINARY_LIST(CONVOY_DECLARE_BINARY)
#undef CONVOY_DECLARE_BINARY

inline Tensor operator+(const Tensor& a, const Tensor& b) {
  return add(a, b);
}
inline Tensor operator-(const Tensor& a, const Tensor& b) {
  return subtract(a, b);
}
inline Tensor operator*(const Tensor& a, const Tensor& b) {
  return multiply(a, b);
}

/// Sum and mean of all elements: a scalar.
Tensor sum(const Tensor& x);
Tensor mean(const Tensor& x);

/// The batches `parts` one after the other, along the first dimension; other extents, device and
/// type are the same for all.
Tensor cat(const std::vector<Tensor>& parts);

struct CrossEntropyOptions {
  double label_smoothing = 0;
  /// Weight of each row; 1 / rows, the mean, where left out.
  std::optional<double> scale;
};

/// Softmax cross-entropy of logits (rows, classes) with labels (rows) of type i64: a scalar.
/// A label out of range is `data`.
Tensor cross_entropy(const Tensor& logits, const Tensor& labels,
                     const CrossEntropyOptions& options = {});

/// scale * sum of (x - target)^2, a scalar; scale is 1 / elements, the mean, where left out.
Tensor mse_loss(const Tensor& x, const Tensor& target, std::optional<double> scale = {});

}  // namespace convoy
