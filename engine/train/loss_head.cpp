#include "engine/train/loss_head.h"

#include <algorithm>
#include <cmath>

#include "engine/ops/ops.h"
#include "engine/optim/optimizer.h"
#include "kernels/base/error.h"

namespace convoy {
namespace {

// A NaN's sign says nothing to a reader.
std::string text_of(double value) {
  return std::isnan(value) ? std::string("nan") : fmt::format("{}", value);
}

// Images begin..end-1 of a flat host array, `width` numbers each.
Tensor rows_of(const std::vector<float>& values, std::int64_t begin, const Shape& shape,
               const Device& device) {
  const std::int64_t width = shape.with(0, 1).count();
  return Tensor::from_host(values.data() + begin * width, shape, {DType::f32, device});
}

}  // namespace

Tensor LossHead::input(const HostBatch& batch, const BatchRange& range) const {
  return rows_of(batch.x, range.begin, batch.shape.with(0, range.end - range.begin),
                 options_.device)
      .to(options_.dtype);
}

Tensor LossHead::target(const HostBatch& batch, const BatchRange& range) const {
  const std::int64_t images = range.end - range.begin;
  if (options_.loss == LossKind::cross_entropy) {
    return Tensor::from_host(batch.labels.data() + range.begin, {images},
                             {DType::i64, options_.device});
  }
  return rows_of(batch.targets, range.begin, {images, batch.target_width}, options_.device)
      .to(parameter_type(options_.dtype));
}

Tensor LossHead::loss(const Tensor& output, const Tensor& target, double scale,
                      double smoothing) const {
  if (options_.loss == LossKind::cross_entropy) {
    return cross_entropy(output, target, {.label_smoothing = smoothing, .scale = scale});
  }
  return mse_loss(output, target, scale / static_cast<double>(target.size(1)));
}

double LossHead::add_to(EvalSums& sums, const HostBatch& batch, const BatchRange& range,
                        const Tensor& output) const {
  const double loss_of_range = loss(output, target(batch, range), 1, 0).item();
  sums.loss += loss_of_range;
  sums.images += range.end - range.begin;
  if (!batch.labels.empty()) {
    count_top(output.to_vector<double>(), output.size(1), batch.labels.data() + range.begin, sums);
  }
  return loss_of_range;
}

void count_top(const std::vector<double>& logits, std::int64_t classes, const std::int64_t* labels,
               EvalSums& sums) {
  const auto rows = static_cast<std::int64_t>(logits.size()) / classes;
  for (std::int64_t row = 0; row < rows; ++row) {
    const double* values = logits.data() + row * classes;
    const std::int64_t label = labels[row];
    std::int64_t better = 0;
    for (std::int64_t c = 0; c < classes; ++c) {
      better += values[c] > values[label] || (values[c] == values[label] && c < label) ? 1 : 0;
    }
    if (std::isnan(values[label])) continue;
    sums.top1 += better < 1 ? 1 : 0;
    sums.top5 += better < 5 ? 1 : 0;
  }
}

std::string bad_loss_text(const std::string& when, double loss, const BadValue& bad) {
  if (bad.layer.empty()) {
    return fmt::format("{}: the loss is {}; every layer's output is finite", when, text_of(loss));
  }
  return fmt::format("{}: the loss is {}; the first value that is not finite is {} in {}", when,
                     text_of(loss), text_of(bad.value), bad.layer);
}

std::string bad_gradient_text(std::int64_t step, const std::string& name, const Tensor& gradient,
                              double square) {
  double bad = square;
  for (double value : gradient.detach().to_vector<double>()) {
    if (std::isfinite(value)) continue;
    bad = value;
    break;
  }
  return fmt::format("step {}: the gradient of {} holds {}", step, name, text_of(bad));
}

std::vector<double> squares_of_gradients(const NamedTensors& parameters,
                                         const std::vector<LayoutId>& layouts) {
  CONVOY_DCHECK(layouts.empty() || layouts.size() == parameters.size(),
                "{} layouts for the gradients of {} parameters", layouts.size(), parameters.size());
  std::vector<Tensor> gradients;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (!parameters[i].second.grad().defined()) continue;
    const Tensor gradient = parameters[i].second.grad().detach();
    gradients.push_back(layouts.empty() ? gradient : gradient.with_layout(layouts[i]));
    places.push_back(i);
  }
  const std::vector<double> squares = squared_norms(gradients);
  std::vector<double> all(parameters.size(), 0.0);
  for (std::size_t i = 0; i < places.size(); ++i) all[places[i]] = squares[i];
  return all;
}

// The clipped norm is the bound itself, as torch.nn.utils.clip_grad_norm_ has it.
double clip_scale(double clip_grad, double norm) {
  return clip_grad > 0 ? std::min(1.0, clip_grad / (norm + 1e-6)) : 1.0;
}

}  // namespace convoy
