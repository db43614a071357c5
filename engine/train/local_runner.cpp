#include "engine/train/local_runner.h"

#include <algorithm>
#include <cmath>

#include "engine/autograd/backward.h"
#include "engine/autograd/grad_mode.h"
#include "engine/io/hash.h"
#include "engine/nn/layers.h"
#include "engine/nn/state.h"
#include "kernels/base/error.h"

namespace convoy {
namespace {

std::vector<double> non_finite(std::vector<double> values) {
  std::erase_if(values, [](double value) { return std::isfinite(value); });
  return values;
}

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

LocalRunner::LocalRunner(std::shared_ptr<Network> network, std::unique_ptr<Optimizer> optimizer,
                         const LocalRunnerOptions& options)
    : network_(std::move(network)), optimizer_(std::move(optimizer)), options_(options) {}

Tensor LocalRunner::input(const HostBatch& batch, std::int64_t begin, std::int64_t end) const {
  return rows_of(batch.x, begin, batch.shape.with(0, end - begin), options_.device)
      .to(options_.dtype);
}

Tensor LocalRunner::loss_of(const HostBatch& batch, std::int64_t begin, std::int64_t end,
                            const Tensor& output, double scale, double smoothing) const {
  if (options_.loss == LossKind::cross_entropy) {
    const Tensor labels = Tensor::from_host(batch.labels.data() + begin, {end - begin},
                                            {DType::i64, options_.device});
    return cross_entropy(output, labels, {.label_smoothing = smoothing, .scale = scale});
  }
  const Tensor target =
      rows_of(batch.targets, begin, {end - begin, batch.target_width}, options_.device)
          .to(options_.dtype);
  return mse_loss(output, target, scale / static_cast<double>(batch.target_width));
}

void LocalRunner::begin(const Window& window) {
  window_ = window;
  loss_ = 0;
  open_.clear();
  network_->train();
  optimizer_->zero_grad();
  optimizer_->set_lr(window.lr);
}

StepResult LocalRunner::step(const Window& window, BatchFeed& feed) {
  begin(window);
  for (std::int64_t i = 0; i < std::ssize(window.shares); ++i) {
    const HostBatch& batch = feed.at(i);
    add_part(batch, {.begin = 0, .images = batch.images});
    feed.done(i);
  }
  const double loss = finish_losses();
  return {loss, update()};
}

void LocalRunner::add_part(const HostBatch& batch, const BatchPart& part,
                           const std::function<void()>& before_last) {
  const double scale = window_.images > 0 ? 1 / static_cast<double>(window_.images) : 0;
  std::vector<std::int64_t> micro_batches = split_batch(part.images, options_.micro_batches);
  micro_batches.resize(std::max(micro_batches.size(), static_cast<std::size_t>(part.passes)));
  std::int64_t begin = part.begin;
  for (std::size_t i = 0; i < micro_batches.size(); ++i) {
    const std::int64_t end = begin + micro_batches[i];
    const Tensor x = input(batch, begin, end);
    const Tensor loss =
        loss_of(batch, begin, end, network_->forward(x), scale, options_.label_smoothing);
    if (before_last && i + 1 == micro_batches.size()) before_last();
    loss.backward();
    open_.push_back({loss.detach(), x});
    // The loss before this one is most likely there: reading it does not hold up the device, and
    // memory does not grow with the number of micro-batches.
    settle_losses(1);
    begin = end;
  }
  commit_batch_norms(*network_);
}

double LocalRunner::finish_losses() {
  settle_losses(0);
  return loss_;
}

double LocalRunner::update(const std::vector<LayoutId>& layouts) {
  const double norm = checked_norm(layouts);
  // The clipped norm is the bound itself, as torch.nn.utils.clip_grad_norm_ has it.
  const double scale =
      options_.clip_grad > 0 ? std::min(1.0, options_.clip_grad / (norm + 1e-6)) : 1.0;
  if (window_.images > 0) optimizer_->step(scale);
  return norm;
}

// Reads the losses of all open micro-batches but the last `but`.
void LocalRunner::settle_losses(std::size_t but) {
  while (open_.size() > but) {
    const double loss = open_.front().loss.item();
    if (!std::isfinite(loss)) {
      fail_loss(fmt::format("step {}", window_.step), loss, open_.front().x);
    }
    loss_ += loss;
    open_.pop_front();
  }
}

void LocalRunner::fail_loss(const std::string& when, double loss, const Tensor& x) {
  const auto [layer, value] = network_->first_non_finite(x);
  if (layer.empty()) {
    CONVOY_FAIL(numerics, "{}: the loss is {}; every layer's output is finite", when,
                text_of(loss));
  }
  CONVOY_FAIL(numerics, "{}: the loss is {}; the first value that is not finite is {} in {}", when,
              text_of(loss), text_of(value), layer);
}

double LocalRunner::checked_norm(const std::vector<LayoutId>& layouts) {
  std::vector<Tensor> gradients;
  std::vector<std::string> names;
  const NamedTensors parameters = network_->named_parameters();
  CONVOY_DCHECK(layouts.empty() || layouts.size() == parameters.size(),
                "{} layouts for the gradients of {} parameters", layouts.size(), parameters.size());
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const auto& [name, parameter] = parameters[i];
    if (!parameter.grad().defined()) continue;
    const Tensor gradient = parameter.grad().detach();
    gradients.push_back(layouts.empty() ? gradient : gradient.with_layout(layouts[i]));
    names.push_back(name);
  }
  const std::vector<double> squares = squared_norms(gradients);
  double sum = 0;
  for (double square : squares) sum += square;
  if (std::isfinite(sum)) return std::sqrt(sum);
  // Backward comes from the end, so the last bad parameter is the first one that went wrong.
  for (std::size_t i = squares.size(); i-- > 0;) {
    if (std::isfinite(squares[i])) continue;
    const std::vector<double> bad = non_finite(gradients[i].to_vector<double>());
    CONVOY_FAIL(numerics, "step {}: the gradient of {} holds {}", window_.step, names[i],
                text_of(bad.empty() ? squares[i] : bad.front()));
  }
  CONVOY_FAIL(numerics, "step {}: the gradient norm is {}", window_.step, std::sqrt(sum));
}

void LocalRunner::settle_layouts(const HostBatch& batch) {
  NoGradScope no_grad;
  network_->eval();
  network_->forward(Tensor::zeros(batch.shape.with(0, 1), {options_.dtype, options_.device}));
  network_->train();
}

EvalSums LocalRunner::evaluate(const HostBatch& batch) {
  return evaluate_part(batch, {.begin = 0, .images = batch.images});
}

EvalSums LocalRunner::evaluate_part(const HostBatch& batch, const BatchPart& part) {
  EvalSums sums;
  if (part.images == 0) return sums;
  NoGradScope no_grad;
  network_->eval();
  const std::int64_t end = part.begin + part.images;
  const Tensor x = input(batch, part.begin, end);
  const Tensor output = network_->forward(x);
  sums.loss = loss_of(batch, part.begin, end, output, 1, 0).item();
  if (!std::isfinite(sums.loss)) fail_loss("evaluation", sums.loss, x);
  sums.images = part.images;
  if (!batch.labels.empty()) {
    count_top(output.to_vector<double>(), output.size(1), batch.labels.data() + part.begin, sums);
  }
  return sums;
}

std::vector<std::string> LocalRunner::weights_hashes() {
  return {weights_hash(finite_model())};
}

TrainingTensors LocalRunner::tensors() {
  return {finite_model(), to_arrays(optimizer_->state_dict()), optimizer_->steps()};
}

// Copies of the network's state.
std::vector<NamedArray> LocalRunner::finite_model() {
  const NamedTensors state = network_->state_dict();
  std::vector<Tensor> values;
  NamedTensors floating;
  for (const auto& entry : state) {
    if (!is_floating(entry.second.dtype())) continue;
    floating.push_back(entry);
    values.push_back(entry.second);
  }
  const std::vector<double> squares = squared_norms(values);
  for (std::size_t i = 0; i < squares.size(); ++i) {
    if (!std::isfinite(squares[i])) {
      CONVOY_FAIL(numerics, "step {}: {} holds a value that is not finite: it is not saved",
                  window_.step, floating[i].first);
    }
  }
  return to_arrays(state);
}

std::uint64_t LocalRunner::tensor_bytes() const {
  auto bytes = [](const NamedTensors& tensors) {
    std::uint64_t sum = 0;
    for (const auto& [name, tensor] : tensors) {
      sum += static_cast<std::uint64_t>(tensor.numel()) * size_of(tensor.dtype());
    }
    return sum;
  };
  return bytes(network_->named_parameters()) * (1 + optimizer_->states_per_parameter()) +
         bytes(network_->named_buffers());
}

void LocalRunner::load(const TrainingTensors& tensors) {
  network_->load_state_dict(to_tensors(tensors.model));
  optimizer_->load_state_dict(to_tensors(tensors.optimizer), tensors.optimizer_steps);
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

}  // namespace convoy
