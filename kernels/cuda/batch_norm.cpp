// Batch norm of the seam: checks of operands, problems and scratch. Kernels are in
// batch_norm_reduce.cu, batch_norm_apply.cu and batch_norm_statistics.cu.
#include "kernels/base/error.h"
#include "kernels/cuda/batch_norm_kernels.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/operands.h"

namespace convoy::CONVOY_GPU {
namespace {

BatchNormProblem problem_of(const BatchNormShape& shape, DType dtype, int longest,
                            std::initializer_list<ConstBuffer> operands) {
  const int width = channel_vector(dtype, shape.c, operands);
  const bool channels_last = operands.begin()->layout == kChannelsLast;
  const std::int64_t positions = shape.n * shape.spatial;
  return {dtype,     width,
          positions, shape.spatial,
          shape.c,   batch_norm_grid(positions, shape.c, width, channels_last, longest)};
}

bool is_empty(const BatchNormShape& shape) {
  return shape.n * shape.spatial * shape.c == 0;
}

StatisticsIn statistics_in(const char* kernel, const BatchNormStatistics& statistics) {
  StatisticsIn in{float_or_double(kernel, "mean", statistics.mean),
                  float_or_double(kernel, "m2", statistics.m2)};
  if (statistics.device_count) {
    check_is(kernel, "device_count", statistics.device_count, DType::f64);
    in.device_count = statistics.device_count.as<double>();
  } else {
    CONVOY_DCHECK(statistics.count > 0, "{}: statistics of {} values", kernel, statistics.count);
    in.count = statistics.count;
  }
  return in;
}

SlotsOut slots_in(Stream& stream, const BatchNormProblem& problem) {
  const SlotLayout layout{problem.grid.blocks_y, problem.channels};
  auto* first = static_cast<double*>(stream.scratch(layout.bytes()));
  return {layout, first, first + layout.slots * layout.channels};
}

// Parameters beside activations of `dtype`.
FloatOrDouble parameter(const char* kernel, const char* operand, ConstBuffer buffer, DType dtype) {
  check_is(kernel, operand, buffer, parameter_dtype(dtype));
  return float_or_double(kernel, operand, buffer);
}

// The mask as bytes; null without a ReLU, whose gradient alone it tells.
template <class AnyBuffer>
auto mask_of(const char* kernel, bool relu, const AnyBuffer& mask) {
  CONVOY_DCHECK(!mask || mask.dtype == DType::u8, "{}: the mask is {}, expected u8", kernel,
                name(mask.dtype));
  return relu ? mask.template as<std::uint8_t>() : nullptr;
}

// What backward reads: of a ReLU either y or the mask.
struct Backward {
  Backward(const char* kernel, const BatchNormShape& shape, bool relu, ConstBuffer x,
           ConstBuffer y_given, ConstBuffer mask, ConstBuffer dy)
      : y(relu && !mask ? y_given : ConstBuffer{}) {
    CONVOY_DCHECK(!relu || y || mask, "{}: neither y nor a mask tells the ReLU's gradient", kernel);
    auto at = [&](ConstBuffer buffer) {
      return activation(kernel, buffer, shape.c, shape.spatial);
    };
    in = {.x = at(x),
          .y = at(y),
          .dy = at(dy),
          .residual = {},
          .relu = relu,
          .mask = mask_of(kernel, relu, mask)};
  }
  ConstBuffer y;
  BatchNormIn in;
};

}  // namespace

void batch_norm_statistics(Stream& stream, const BatchNormShape& shape, ConstBuffer x, Buffer mean,
                           Buffer m2) {
  constexpr const char* kName = "batch_norm_statistics";
  check_is(kName, "mean", mean, DType::f64);
  check_is(kName, "m2", m2, DType::f64);
  const DType dtype = activation_dtype(kName, {x});
  const BatchNormProblem problem = problem_of(shape, dtype, kReductionLength, {x});
  if (shape.c == 0) return;
  const SlotsOut slots = slots_in(stream, problem);
  launch_statistics(handle(stream), problem, activation(kName, x, shape.c, shape.spatial), slots);
  launch_merge_moments(handle(stream), problem, slots, mean.as<double>(), m2.as<double>());
}

void batch_norm_merge(Stream& stream, const PackedStatistics& packed, std::int64_t parts,
                      ConstBuffer from, Buffer total) {
  constexpr const char* kName = "batch_norm_merge";
  check_is(kName, "the parts", from, DType::f64);
  check_is(kName, "the total", total, DType::f64);
  launch_merge_packed(handle(stream), packed.channels, parts, from.as<double>(), total.as<double>(),
                      failure_of(stream));
}

void batch_norm_update(Stream& stream, std::int64_t channels, const BatchNormStatistics& batch,
                       double momentum, Buffer running_mean, Buffer running_var) {
  constexpr const char* kName = "batch_norm_update";
  const StatisticsIn in = statistics_in(kName, batch);
  float_or_double(kName, "running_mean", running_mean);
  float_or_double(kName, "running_var", running_var);
  CONVOY_CHECK(batch.device_count || batch.count > 1, "{}: one value per channel has no variance",
               kName);
  if (channels == 0) return;
  launch_update_running(handle(stream), channels, in, momentum, running_mean, running_var);
}

std::size_t batch_norm_mask_bytes(const BatchNormShape& shape, LayoutId layout, DType dtype) {
  const int width = channel_vector(dtype, shape.c, {{nullptr, dtype, layout}});
  if (layout != kChannelsLast || width == 1) return 0;
  return static_cast<std::size_t>(shape.n * shape.spatial * shape.c / width);
}

void batch_norm_apply(Stream& stream, const BatchNormShape& shape, ConstBuffer x,
                      const BatchNormStatistics& statistics, double epsilon, ConstBuffer gamma,
                      ConstBuffer beta, ConstBuffer residual, bool relu, Buffer y, Buffer mask) {
  constexpr const char* kName = "batch_norm_apply";
  const DType dtype = activation_dtype(kName, {x, residual, y});
  const BatchNormFactors factors{statistics_in(kName, statistics), epsilon,
                                 parameter(kName, "gamma", gamma, dtype),
                                 parameter(kName, "beta", beta, dtype)};
  auto at = [&](ConstBuffer buffer) { return activation(kName, buffer, shape.c, shape.spatial); };
  const BatchNormIn in{.x = at(x), .y = {}, .dy = {}, .residual = at(residual), .relu = relu};
  const ActivationOut out = activation_out(kName, y, shape.c, shape.spatial);
  const BatchNormProblem problem = problem_of(shape, dtype, kApplyLength, {x, residual, y});
  CONVOY_DCHECK(!mask || problem.width > 1, "{}: operands that keep no mask of the ReLU", kName);
  if (is_empty(shape)) return;
  launch_apply(handle(stream), problem, in, factors, out, mask_of(kName, relu, mask));
}

void batch_norm_backward_reduce(Stream& stream, const BatchNormShape& shape, ConstBuffer x,
                                ConstBuffer y, ConstBuffer mask, ConstBuffer dy,
                                const BatchNormStatistics& statistics, double epsilon, bool relu,
                                Buffer sum_dz, Buffer sum_dz_xhat) {
  constexpr const char* kName = "batch_norm_backward_reduce";
  check_is(kName, "sum_dz", sum_dz, DType::f64);
  check_is(kName, "sum_dz_xhat", sum_dz_xhat, DType::f64);
  const DType dtype = activation_dtype(kName, {x, y, dy});
  const Backward backward(kName, shape, relu, x, y, mask, dy);
  const BackwardSums sums{statistics_in(kName, statistics), epsilon, dtype == DType::bf16};
  if (shape.c == 0) return;
  const BatchNormProblem problem = problem_of(shape, dtype, kReductionLength, {x, backward.y, dy});
  const SlotsOut slots = slots_in(stream, problem);
  launch_backward_sums(handle(stream), problem, backward.in, sums.statistics.mean, slots);
  launch_add_sums(handle(stream), problem, slots, sums, sum_dz.as<double>(),
                  sum_dz_xhat.as<double>());
}

void batch_norm_backward_apply(Stream& stream, const BatchNormShape& shape, ConstBuffer x,
                               ConstBuffer y, ConstBuffer mask, ConstBuffer dy,
                               const BatchNormStatistics& statistics, double epsilon, bool relu,
                               ConstBuffer gamma, ConstBuffer sum_dz, ConstBuffer sum_dz_xhat,
                               Buffer dx, Buffer dresidual) {
  constexpr const char* kName = "batch_norm_backward_apply";
  CONVOY_DCHECK(bool(sum_dz) == bool(sum_dz_xhat), "{}: one of two sums is left out", kName);
  if (!sum_dz) x = {};
  const DType dtype = activation_dtype(kName, {x, y, dy, dx, dresidual});
  const Backward backward(kName, shape, relu, x, y, mask, dy);
  BatchNormFactors factors{
      statistics_in(kName, statistics), epsilon, parameter(kName, "gamma", gamma, dtype), {}};
  if (sum_dz) {
    check_is(kName, "sum_dz", sum_dz, DType::f64);
    check_is(kName, "sum_dz_xhat", sum_dz_xhat, DType::f64);
    factors.sum_dz = sum_dz.as<double>();
    factors.sum_dz_xhat = sum_dz_xhat.as<double>();
  }
  auto out = [&](Buffer buffer) { return activation_out(kName, buffer, shape.c, shape.spatial); };
  const ActivationOut dx_out = out(dx), dresidual_out = out(dresidual);
  if (is_empty(shape)) return;
  launch_backward_apply(handle(stream),
                        problem_of(shape, dtype, kApplyLength, {dy, x, backward.y, dx, dresidual}),
                        backward.in, factors, dx_out, dresidual_out);
}

}  // namespace convoy::CONVOY_GPU
