#include "engine/train/local_runner.h"

#include <cmath>

#include "engine/autograd/backward.h"
#include "engine/autograd/grad_mode.h"
#include "engine/io/hash.h"
#include "engine/nn/layers.h"
#include "engine/nn/state.h"
#include "engine/train/model_state.h"
#include "kernels/base/error.h"

namespace convoy {

LocalRunner::LocalRunner(std::shared_ptr<Network> network, std::unique_ptr<Optimizer> optimizer,
                         const RunnerOptions& options)
    : network_(std::move(network)),
      optimizer_(std::move(optimizer)),
      options_(options),
      head_(options) {}

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
    add_batch(feed.at(i));
    feed.done(i);
  }
  return finish({}, {});
}

std::vector<BatchRange> LocalRunner::micro_batches_of(std::int64_t images) const {
  std::vector<BatchRange> ranges;
  std::int64_t begin = 0;
  for (std::int64_t size : split_batch(images, options_.micro_batches)) {
    ranges.push_back({begin, begin + size});
    begin += size;
  }
  return ranges;
}

Tensor LocalRunner::add_micro_batch(const Tensor& x, const Tensor& target) {
  const double scale = window_.images > 0 ? 1 / static_cast<double>(window_.images) : 0;
  const Tensor loss = head_.training_loss(network_->forward(x), target, scale);
  loss.backward();
  return loss.detach();
}

void LocalRunner::add_batch(const HostBatch& batch) {
  for (const BatchRange& range : micro_batches_of(batch.images)) {
    const Tensor x = head_.input(batch, range);
    open_.push_back({add_micro_batch(x, head_.target(batch, range)), x});
    // The loss before this one is most likely there: reading it does not hold up the device, and
    // memory does not grow with the number of micro-batches.
    settle_losses(1);
  }
  commit_batch_norms(*network_);
}

StepResult LocalRunner::finish(const std::vector<Tensor>& losses,
                               const std::vector<Tensor>& inputs) {
  for (std::size_t i = 0; i < losses.size(); ++i) open_.push_back({losses[i], inputs[i]});
  settle_losses(0);
  return {loss_, update()};
}

double LocalRunner::update() {
  const double norm = checked_norm();
  if (window_.images > 0) optimizer_->step(clip_scale(options_.clip_grad, norm));
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
  CONVOY_FAIL(numerics, "{}", bad_loss_text(when, loss, {layer, value}));
}

double LocalRunner::checked_norm() {
  const NamedTensors parameters = network_->named_parameters();
  const std::vector<double> squares = squares_of_gradients(parameters);
  double sum = 0;
  for (double square : squares) sum += square;
  if (std::isfinite(sum)) return std::sqrt(sum);
  // Backward comes from the end, so the last bad parameter is the first one that went wrong.
  for (std::size_t i = squares.size(); i-- > 0;) {
    if (std::isfinite(squares[i])) continue;
    const auto& [name, parameter] = parameters[i];
    CONVOY_FAIL(numerics, "{}",
                bad_gradient_text(window_.step, name, parameter.grad(), squares[i]));
  }
  CONVOY_FAIL(numerics, "step {}: the gradient norm is {}", window_.step, std::sqrt(sum));
}

Tensor LocalRunner::infer(const Tensor& x) {
  NoGradScope no_grad;
  network_->eval();
  return network_->forward(x);
}

// In the micro-batches of training: other sizes may round otherwise, and stages have these too.
void LocalRunner::infer_each(
    const HostBatch& batch,
    const std::function<void(const BatchRange&, const Tensor& x, const Tensor& output)>& see) {
  const NoGradScope no_grad;
  for (const BatchRange& range : micro_batches_of(batch.images)) {
    const Tensor x = head_.input(batch, range);
    see(range, x, infer(x));
  }
}

EvalSums LocalRunner::evaluate(const HostBatch& batch) {
  EvalSums sums;
  infer_each(batch, [&](const BatchRange& range, const Tensor& x, const Tensor& output) {
    const double loss = head_.add_to(sums, batch, range, output);
    if (!std::isfinite(loss)) fail_loss("evaluation", loss, x);
  });
  return sums;
}

Outputs LocalRunner::predict(const HostBatch& batch) {
  Outputs outputs{network_->out(), {}};
  infer_each(batch, [&](const BatchRange&, const Tensor&, const Tensor& output) {
    const std::vector<double> rows = output.to_vector<double>();
    outputs.values.insert(outputs.values.end(), rows.begin(), rows.end());
  });
  return outputs;
}

std::vector<std::string> LocalRunner::weights_hashes() {
  return {weights_hash(finite_state(*network_, window_.step))};
}

TrainingTensors LocalRunner::tensors() {
  return {finite_state(*network_, window_.step), to_arrays(optimizer_->state_dict()),
          optimizer_->steps()};
}

std::vector<NamedArray> LocalRunner::gradients() {
  return gradient_arrays(*network_);
}

std::uint64_t LocalRunner::tensor_bytes() const {
  return state_bytes(*network_, optimizer_->states_per_parameter());
}

void LocalRunner::load(const TrainingTensors& tensors) {
  network_->load_state_dict(to_tensors(tensors.model));
  optimizer_->load_state_dict(to_tensors(tensors.optimizer), tensors.optimizer_steps);
}

}  // namespace convoy
