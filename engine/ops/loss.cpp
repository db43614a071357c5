// Losses. Forward computes the gradient in the same pass; backward only scales it. Values of bf16
// are taken as f32, and so is their loss.
#include "engine/autograd/node.h"
#include "engine/ops/ops.h"
#include "engine/ops/support.h"
#include "kernels/base/error.h"
#include "kernels/elementwise.h"

namespace convoy {
namespace {

// dx was made for a loss gradient of 1. The host does not look at the factor: it would have to wait
// for the device.
BackwardHalf scaled(const char* op, const Tensor& dx) {
  return [dx = SavedTensor(op, dx)](const Tensor& dy, const std::vector<bool>&) -> Gradients {
    Tensor result = Tensor::empty_like(dx.get());
    const std::int64_t count = result.numel();
    if (count == 0) return {result};
    kernels_of(dy).broadcast(stream_of(dy), {1, count, 1}, 1, dy.buffer(), result.buffer());
    kernels_of(dy).binary_forward(stream_of(dy), Binary::multiply, count, result.buffer(),
                                  dx.get().buffer(), result.buffer());
    return {result};
  };
}

bool is_half(const Tensor& x) {
  return x.defined() && x.dtype() == DType::bf16;
}

}  // namespace

Tensor cross_entropy(const Tensor& logits, const Tensor& labels,
                     const CrossEntropyOptions& options) {
  if (is_half(logits)) return cross_entropy(logits.to(DType::f32), labels, options);
  check_rank("cross_entropy", "logits", logits, 2);
  check_rank("cross_entropy", "labels", labels, 1);
  check_same_device("cross_entropy", {logits, labels});
  check_operands("cross_entropy", {logits});
  CONVOY_CHECK(labels.dtype() == DType::i64, "cross_entropy: labels are {}, expected i64",
               name(labels.dtype()));
  CONVOY_CHECK(labels.size(0) == logits.size(0), "cross_entropy: {} rows of logits, {} labels",
               logits.size(0), labels.size(0));
  CONVOY_CHECK(logits.size(1) > 0 && (logits.size(0) > 0 || options.scale),
               "cross_entropy: logits {} are empty, their mean is open: give a scale",
               to_string(logits.shape()));
  CONVOY_CHECK(options.label_smoothing >= 0 && options.label_smoothing < 1,
               "cross_entropy: label smoothing {} is not in [0, 1)", options.label_smoothing);
  const double rows = static_cast<double>(logits.size(0));
  const CrossEntropyShape shape{logits.size(0), logits.size(1), options.label_smoothing,
                                options.scale.value_or(1 / rows)};
  const Tensor input = logits.detach().with_layout(kPlain);
  Tensor loss = Tensor::empty({}, logits.options());
  Tensor dlogits = Tensor::empty(logits.shape(), logits.options());
  if (has_values(logits)) {
    kernels_of(logits).softmax_cross_entropy(stream_of(logits), shape, input.buffer(),
                                             labels.buffer(), loss.buffer(), dlogits.buffer());
  } else {
    loss.zero_();
  }
  return record("cross_entropy", loss, {logits}, scaled("cross_entropy", dlogits));
}

Tensor mse_loss(const Tensor& x, const Tensor& target, std::optional<double> scale) {
  if (is_half(x)) return mse_loss(x.to(DType::f32), target.to(DType::f32), scale);
  check_operands("mse_loss", {x, target});
  CONVOY_CHECK(x.defined() && target.defined() && x.shape() == target.shape(),
               "mse_loss: x is {}, the target is {}", describe(x), describe(target));
  CONVOY_CHECK(has_values(x) || scale, "mse_loss: x {} is empty, its mean is open: give a scale",
               to_string(x.shape()));
  CONVOY_CHECK(!target.requires_grad(), "mse_loss: the target may not require a gradient");
  const Tensor input = x.detach().with_layout(kPlain);
  const Tensor wanted = target.with_layout(kPlain);
  Tensor loss = Tensor::empty({}, x.options());
  Tensor dx = Tensor::empty(x.shape(), x.options());
  if (has_values(x)) {
    const double mean = 1.0 / static_cast<double>(x.numel());
    kernels_of(x).mse(stream_of(x), x.numel(), scale.value_or(mean), input.buffer(),
                      wanted.buffer(), loss.buffer(), dx.buffer());
  } else {
    loss.zero_();
  }
  return record("mse_loss", loss, {x}, scaled("mse_loss", dx));
}

}  // namespace convoy
