// Batch norm, with the residual add and the ReLU behind it in the same pass over memory. Backward
// takes the two sums of a channel in its inputs half; they are also the gradients of weight and
// bias.
#include "engine/autograd/node.h"
#include "engine/ops/ops.h"
#include "engine/ops/support.h"
#include "kernels/base/error.h"

namespace convoy {
namespace {

BatchNormShape shape_of(const Tensor& x) {
  BatchNormShape shape{x.size(0), x.size(1), 1};
  for (int i = 2; i < x.shape().rank(); ++i) shape.spatial *= x.size(i);
  return shape;
}

void check(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& mean,
           const Tensor& var, const Tensor& residual) {
  CONVOY_CHECK(x.defined() && (x.shape().rank() == 2 || x.shape().rank() == 4),
               "batch_norm: x is {}, expected 2 or 4 dimensions", describe(x));
  check_operands("batch_norm", {x, weight, bias, mean, var, residual});
  for (const Tensor& tensor : {weight, bias, mean, var}) {
    CONVOY_CHECK(tensor.defined() && tensor.shape() == Shape{x.size(1)},
                 "batch_norm: x has {} channels, a parameter or running statistic is {}", x.size(1),
                 describe(tensor));
  }
  CONVOY_CHECK(!residual.defined() || residual.shape() == x.shape(),
               "batch_norm: x is {}, the residual is {}", to_string(x.shape()), describe(residual));
}

// The statistics that one call normalises by; keeps their memory.
struct Statistics {
  Tensor mean, m2;
  double count = 1;
  BatchNormStatistics view() const { return {mean.buffer(), m2.buffer(), count}; }
};

TensorOptions statistics_options(const Tensor& x) {
  return {DType::f64, x.device()};
}

Statistics measure(const Tensor& x, const BatchNormShape& shape) {
  const TensorOptions options = statistics_options(x);
  Statistics result{Tensor::empty({shape.c}, options), Tensor::empty({shape.c}, options),
                    static_cast<double>(shape.n * shape.spatial)};
  CONVOY_CHECK(result.count > 1,
               "batch_norm: 1 value per channel in training: x is {}; use a larger batch or image, "
               "or --bn sync over several replicas",
               to_string(x.shape()));
  kernels_of(x).batch_norm_statistics(stream_of(x), shape, x.buffer(), result.mean.buffer(),
                                      result.m2.buffer());
  return result;
}

// The running statistics as they are now: later batches change them in place.
Statistics snapshot(const Tensor& mean, const Tensor& var) {
  auto copy = [](const Tensor& x) {
    return x.dtype() == DType::f64 ? x.clone() : x.detach().to(DType::f64);
  };
  return {copy(mean), copy(var), 1};
}

void collect(BatchNormPending& pending, const Tensor& x, std::int64_t channels,
             const Statistics& part) {
  if (!pending.mean.defined()) {
    pending.mean = Tensor::zeros({channels}, statistics_options(x));
    pending.m2 = Tensor::zeros({channels}, statistics_options(x));
  }
  kernels_of(x).batch_norm_merge(stream_of(x), channels, pending.mean.buffer(), pending.m2.buffer(),
                                 pending.count, part.view());
  pending.count += part.count;
}

void update_running(Tensor& mean, Tensor& var, std::int64_t channels, double momentum,
                    const BatchNormStatistics& batch) {
  mean.before_write();
  var.before_write();
  kernels_of(mean).batch_norm_update(stream_of(mean), channels, batch, momentum, mean.buffer(),
                                     var.buffer());
}

// The sums of a channel that both halves of backward use.
struct Sums {
  Tensor dz, dz_xhat;
};

}  // namespace

Tensor batch_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, Tensor running_mean,
                  Tensor running_var, const BatchNormOptions& options, const Tensor& residual) {
  check(x, weight, bias, running_mean, running_var, residual);
  const BatchNormShape shape = shape_of(x);
  const bool own_statistics = options.training && options.mode != BatchNormMode::frozen;
  const Statistics statistics =
      own_statistics ? measure(x, shape) : snapshot(running_mean, running_var);
  if (own_statistics && options.update_running) {
    if (options.mode == BatchNormMode::deferred && options.pending) {
      collect(*options.pending, x, shape.c, statistics);
    } else {
      update_running(running_mean, running_var, shape.c, options.momentum, statistics.view());
    }
  }
  const Tensor added = residual.defined() ? residual.detach().with_layout(x.layout()) : residual;
  Tensor y = Tensor::empty_like(x);
  kernels_of(x).batch_norm_apply(stream_of(x), shape, x.buffer(), statistics.view(),
                                 options.epsilon, weight.buffer(), bias.buffer(),
                                 buffer_or_none(added), options.relu, y.buffer());

  auto sums = std::make_shared<Sums>();
  auto inputs_half = [=, relu = options.relu, epsilon = options.epsilon,
                      input = SavedTensor("batch_norm", x),
                      gamma = SavedTensor("batch_norm", weight),
                      output = options.relu ? SavedTensor("batch_norm", y) : SavedTensor()](
                         const Tensor& dy, const std::vector<bool>& wanted) -> Gradients {
    const ConstBuffer mask = output.defined() ? output.get().buffer() : Buffer{};
    const TensorOptions f64 = statistics_options(dy);
    sums->dz = Tensor::empty({shape.c}, f64);
    sums->dz_xhat = Tensor::empty({shape.c}, f64);
    kernels_of(dy).batch_norm_backward_reduce(stream_of(dy), shape, input.get().buffer(), mask,
                                              dy.buffer(), statistics.view(), epsilon, relu,
                                              sums->dz.buffer(), sums->dz_xhat.buffer());
    if (!wanted[0] && !wanted[1]) return {Tensor(), Tensor()};
    Tensor dx = Tensor::empty_like(input.get());
    Tensor dresidual;
    if (wanted[1]) dresidual = relu ? Tensor::empty_like(dy) : dy;
    kernels_of(dy).batch_norm_backward_apply(
        stream_of(dy), shape, input.get().buffer(), mask, dy.buffer(), statistics.view(), epsilon,
        relu, gamma.get().buffer(), own_statistics ? sums->dz.buffer() : Buffer{},
        own_statistics ? sums->dz_xhat.buffer() : Buffer{}, statistics.count, dx.buffer(),
        relu ? buffer_or_none(dresidual) : Buffer{});
    return {dx, dresidual};
  };
  auto weights_half = [sums](const Tensor& dy, const std::vector<bool>&) -> Gradients {
    return {sums->dz_xhat.to(dy.dtype()), sums->dz.to(dy.dtype())};
  };
  return record("batch_norm", y, {x, residual}, inputs_half, {weight, bias}, weights_half);
}

void commit_batch_norm(BatchNormPending& pending, Tensor running_mean, Tensor running_var,
                       double momentum) {
  if (pending.count == 0) return;
  update_running(running_mean, running_var, running_mean.size(0), momentum,
                 {pending.mean.buffer(), pending.m2.buffer(), pending.count});
  pending = {};
}

}  // namespace convoy
