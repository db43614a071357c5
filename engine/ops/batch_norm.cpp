// Batch norm, with the residual add and the ReLU behind it in the same pass over memory. Backward
// takes the two sums of a channel in its inputs half; they are also the gradients of weight and
// bias. With a group the statistics are those of all its ranks: they are gathered and merged in
// rank order on the device, in forward the moments and in backward the two sums. The host never
// waits for the group's number of values.
#include <optional>

#include "comm/communicator.h"
#include "engine/autograd/grad_mode.h"
#include "engine/autograd/node.h"
#include "engine/ops/ops.h"
#include "engine/ops/support.h"
#include "engine/tensor/storage.h"
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
  check_operands("batch_norm", {x, residual}, {weight, bias, mean, var});
  for (const Tensor& tensor : {weight, bias, mean, var}) {
    CONVOY_CHECK(tensor.defined() && tensor.shape() == Shape{x.size(1)},
                 "batch_norm: x has {} channels, a parameter or running statistic is {}", x.size(1),
                 describe(tensor));
  }
  CONVOY_CHECK(!residual.defined() || residual.shape() == x.shape(),
               "batch_norm: x is {}, the residual is {}", to_string(x.shape()), describe(residual));
}

bool has_values(const BatchNormShape& shape) {
  return shape.n * shape.spatial > 0;
}

// The statistics that one call normalises by; keeps their memory.
struct Statistics {
  Tensor mean, m2;
  double count = 1;
  Tensor device_count;  // where the host does not know it
  Tensor packed;        // all of it, as PackedStatistics
  BatchNormStatistics view() const {
    return {mean.buffer(), m2.buffer(), count, buffer_or_none(device_count)};
  }
};

TensorOptions statistics_options(const Tensor& x) {
  return {DType::f64, x.device()};
}

Statistics parts_of(const Tensor& packed, std::int64_t channels) {
  Statistics result;
  result.packed = packed;
  result.mean = packed.slice(0, channels);
  result.m2 = packed.slice(channels, 2 * channels);
  return result;
}

// Of the values of x alone.
Statistics measure(const Tensor& x, const BatchNormShape& shape, bool packs_count) {
  const PackedStatistics packed{shape.c};
  Statistics result = parts_of(Tensor::empty({packed.values()}, statistics_options(x)), shape.c);
  result.count = static_cast<double>(shape.n * shape.spatial);
  if (!has_values(shape)) {
    result.packed.zero_();
    return result;
  }
  kernels_of(x).batch_norm_statistics(stream_of(x), shape, x.buffer(), result.mean.buffer(),
                                      result.m2.buffer());
  if (packs_count) result.packed.slice(2 * shape.c, packed.values()).fill_(result.count);
  return result;
}

// Adds `parts` sets of statistics, one behind the other, to `total`, in their order.
void merge(const Tensor& total, const Tensor& parts, std::int64_t channels) {
  const PackedStatistics packed{channels};
  kernels_of(total).batch_norm_merge(stream_of(total), packed, parts.numel() / packed.values(),
                                     parts.buffer(), total.buffer());
}

// Of the values of all ranks: the same bits on each.
Statistics merged_over(Communicator& group, const Statistics& own, std::int64_t channels) {
  const std::int64_t values = own.packed.numel();
  const Tensor parts = Tensor::empty({group.size() * values}, own.packed.options());
  group.all_gather(own.packed.buffer(), parts.buffer(), values, stream_of(own.packed));
  Statistics result = parts_of(Tensor::zeros({values}, own.packed.options()), channels);
  merge(result.packed, parts, channels);
  result.device_count = result.packed.slice(2 * channels, values);
  return result;
}

Statistics training_statistics(const Tensor& x, const BatchNormShape& shape,
                               const BatchNormOptions& options) {
  CONVOY_CHECK(options.group || shape.n * shape.spatial != 1,
               "batch_norm: 1 value per channel in training: x is {}; use a larger batch or image, "
               "or --bn sync over several replicas",
               to_string(x.shape()));
  const Statistics own = measure(x, shape, options.group || options.pending);
  return options.group ? merged_over(*options.group, own, shape.c) : own;
}

// The running statistics as they are now: later batches change them in place.
Statistics snapshot(const Tensor& mean, const Tensor& var) {
  auto copy = [](const Tensor& x) {
    return x.dtype() == DType::f64 ? x.clone() : x.detach().to(DType::f64);
  };
  Statistics result;
  result.mean = copy(mean);
  result.m2 = copy(var);
  return result;
}

void update_running(Tensor& mean, Tensor& var, std::int64_t channels, double momentum,
                    const BatchNormStatistics& batch) {
  mean.before_write();
  var.before_write();
  kernels_of(mean).batch_norm_update(stream_of(mean), channels, batch, momentum, mean.buffer(),
                                     var.buffer());
}

void collect(BatchNormPending& pending, const Statistics& part, std::int64_t channels) {
  if (!pending.packed.defined()) {
    pending.packed = Tensor::zeros(part.packed.shape(), part.packed.options());
  }
  merge(pending.packed, part.packed, channels);
}

// The sums of a channel that both halves of backward use.
struct Sums {
  explicit Sums(const Tensor& both)
      : packed(both),
        dz(both.slice(0, both.numel() / 2)),
        dz_xhat(both.slice(both.numel() / 2, both.numel())) {}
  Tensor packed, dz, dz_xhat;
};

Sums summed_over(Communicator& group, const Sums& own) {
  const Tensor total = Tensor::empty_like(own.packed);
  group.all_reduce(own.packed.buffer(), total.buffer(), total.numel(), Reduction::sum,
                   stream_of(total));
  return Sums(total);
}

void keep_statistics(Tensor& mean, Tensor& var, const BatchNormOptions& options,
                     const Statistics& statistics, std::int64_t channels) {
  if (options.mode == BatchNormMode::deferred && options.pending) {
    collect(*options.pending, statistics, channels);
  } else {
    update_running(mean, var, channels, options.momentum, statistics.view());
  }
}

// For the ReLU's mask, where the backend keeps one and backward may come.
Tensor empty_mask(const Tensor& x, const BatchNormShape& shape) {
  const std::size_t bytes =
      grad_enabled() ? kernels_of(x).batch_norm_mask_bytes(shape, x.layout(), x.dtype()) : 0;
  if (bytes == 0) return Tensor();
  return Tensor::empty({static_cast<std::int64_t>(bytes)}, {DType::u8, x.device()});
}

// What y is made of; makes it once more, without the ReLU's mask.
struct Maker {
  Tensor operator()() const {
    const Tensor x = input.get();
    Tensor y = Tensor::empty_like(x);
    apply(x, Tensor(), y, Tensor());
    return y;
  }
  void apply(const Tensor& x, const Tensor& residual, const Tensor& y, const Tensor& mask) const {
    kernels_of(x).batch_norm_apply(
        stream_of(x), shape, x.buffer(), statistics.view(), epsilon, gamma.get().buffer(),
        beta.get().buffer(), buffer_or_none(residual), relu, y.buffer(), buffer_or_none(mask));
  }

  BatchNormShape shape;
  bool relu;
  double epsilon;
  Statistics statistics;
  SavedTensor input, gamma, beta;
};

// dy -> dx and the residual's gradient. It owns the saved tensors: they go when it has run, the
// sums stay for the weights half.
struct InputsHalf {
  Gradients operator()(const Tensor& dy, const std::vector<bool>& wanted) const;
  const Sums& reduce(const Tensor& dy) const;
  // Where the ReLU let values pass is told by bits where the backend keeps them, else by y.
  ConstBuffer y() const { return output.defined() ? output.get().buffer() : Buffer{}; }

  BatchNormShape shape;
  bool training;
  bool relu;
  double epsilon;
  Communicator* group;
  Statistics statistics;
  SavedTensor input, gamma, output;
  Tensor mask;
  std::shared_ptr<std::optional<Sums>> sums = std::make_shared<std::optional<Sums>>();
};

const Sums& InputsHalf::reduce(const Tensor& dy) const {
  const Sums& own = sums->emplace(Tensor::empty({2 * shape.c}, statistics_options(dy)));
  if (has_values(shape)) {
    kernels_of(dy).batch_norm_backward_reduce(stream_of(dy), shape, input.get().buffer(), y(),
                                              buffer_or_none(mask), dy.buffer(), statistics.view(),
                                              epsilon, relu, own.dz.buffer(), own.dz_xhat.buffer());
  } else {
    Tensor(own.packed).zero_();
  }
  return own;
}

Gradients InputsHalf::operator()(const Tensor& dy, const std::vector<bool>& wanted) const {
  const Sums& own = reduce(dy);
  if (!wanted[0] && !wanted[1]) return {Tensor(), Tensor()};
  const Sums all = group ? summed_over(*group, own) : own;
  Tensor dx = Tensor::empty_like(input.get());
  Tensor dresidual;
  if (wanted[1]) dresidual = relu ? Tensor::empty_like(dy) : dy;
  if (has_values(shape)) {
    kernels_of(dy).batch_norm_backward_apply(
        stream_of(dy), shape, input.get().buffer(), y(), buffer_or_none(mask), dy.buffer(),
        statistics.view(), epsilon, relu, gamma.get().buffer(),
        training ? all.dz.buffer() : Buffer{}, training ? all.dz_xhat.buffer() : Buffer{},
        dx.buffer(), relu ? buffer_or_none(dresidual) : Buffer{});
  }
  return {dx, dresidual};
}

}  // namespace

Tensor batch_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, Tensor running_mean,
                  Tensor running_var, const BatchNormOptions& options, const Tensor& residual) {
  check(x, weight, bias, running_mean, running_var, residual);
  const BatchNormShape shape = shape_of(x);
  const bool training = options.training && options.mode != BatchNormMode::frozen;
  Communicator* const group = training ? options.group : nullptr;
  const Statistics statistics =
      training ? training_statistics(x, shape, options) : snapshot(running_mean, running_var);
  if (training && options.update_running && (group || has_values(shape))) {
    keep_statistics(running_mean, running_var, options, statistics, shape.c);
  }
  const Tensor added = residual.defined() ? residual.detach().with_layout(x.layout()) : residual;
  Tensor y = Tensor::empty_like(x);
  const Tensor mask = options.relu ? empty_mask(x, shape) : Tensor();
  const Maker maker{shape,
                    options.relu,
                    options.epsilon,
                    statistics,
                    SavedTensor("batch_norm", x),
                    SavedTensor("batch_norm", weight),
                    SavedTensor("batch_norm", bias)};
  if (has_values(shape)) maker.apply(x, added, y, mask);
  const bool reads_y = options.relu && !mask.defined();
  // x is kept anyway, so y need not be. A GPU has less bandwidth to spare for that than memory.
  if (grad_enabled() && has_values(shape) && !reads_y && !added.defined() && !is_gpu(x.device())) {
    y.storage()->offer_remake({maker, y.shape(), y.layout()});
  }
  const InputsHalf inputs_half{shape,
                               training,
                               options.relu,
                               options.epsilon,
                               group,
                               statistics,
                               SavedTensor("batch_norm", x),
                               SavedTensor("batch_norm", weight),
                               reads_y ? SavedTensor("batch_norm", y) : SavedTensor(),
                               mask};
  auto weights_half = [sums = inputs_half.sums, type = weight.dtype()](
                          const Tensor&, const std::vector<bool>&) -> Gradients {
    return {(*sums)->dz_xhat.to(type), (*sums)->dz.to(type)};
  };
  return record("batch_norm", y, {x, residual}, inputs_half, {weight, bias}, weights_half);
}

void commit_batch_norm(BatchNormPending& pending, Tensor running_mean, Tensor running_var,
                       double momentum) {
  if (!pending.packed.defined()) return;
  const std::int64_t channels = running_mean.size(0);
  Statistics batch = parts_of(pending.packed, channels);
  batch.device_count = pending.packed.slice(2 * channels, pending.packed.numel());
  update_running(running_mean, running_var, channels, momentum, batch.view());
  pending = {};
}

}  // namespace convoy
