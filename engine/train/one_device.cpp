#include "engine/train/one_device.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "comm/thread_communicator.h"
#include "engine/autograd/grad_mode.h"
#include "engine/nn/layers.h"
#include "engine/ops/ops.h"
#include "engine/train/setup.h"
#include "engine/train/worker_threads.h"
#include "kernels/base/context.h"
#include "kernels/base/error.h"

namespace convoy {

struct OneDevice::Replica {
  int number = 0;
  std::shared_ptr<LayerWatch> watch = std::make_shared<LayerWatch>();
  std::shared_ptr<Network> network;
  std::unique_ptr<HostCommunicator> group;  // of batch norm, in `sync` modes
  std::unique_ptr<Stream> stream;           // likewise
  double loss = 0;
};

namespace {

// Images begin..end-1 of a flat host array.
Tensor rows(const std::vector<float>& values, std::int64_t begin, const Shape& shape,
            const TensorOptions& options) {
  const float* first = values.data() + begin * shape.with(0, 1).count();
  return Tensor::from_host(first, shape, {DType::f32, options.device}).to(options.dtype);
}

}  // namespace

OneDevice::OneDevice(const TrainingJob& job, int replicas, const Device& device,
                     const NamedTensors& weights, std::function<void()> alive)
    : settings_(job.settings),
      division_(division_of(settings_, replicas)),
      device_(device),
      dtype_(dtype_of_precision(settings_)),
      alive_(std::move(alive)) {
  std::vector<std::unique_ptr<HostCommunicator>> groups;
  if (division_.together) groups = make_thread_communicators(replicas);
  for (int i = 0; i < replicas; ++i) {
    auto replica = std::make_unique<Replica>();
    replica->number = i;
    replica->network = watched(*job.make_network(), replica->watch);
    replica->network->materialize(device_, parameter_type(dtype_), settings_.seed);
    if (!weights.empty()) replica->network->load_state_dict(weights);
    replica->network->to(parameter_type(dtype_));
    replica->network->to(device_);
    set_batch_norm_mode(*replica->network, batch_norm_mode(settings_));
    if (division_.together) {
      replica->group = std::move(groups[static_cast<std::size_t>(i)]);
      replica->stream = context(device_).make_stream();
      set_batch_norm_group(*replica->network, replica->group.get());
    }
    replicas_.push_back(std::move(replica));
  }
  optimizer_ = make_optimizer(settings_, replicas_.front()->network->named_parameters());
}

OneDevice::~OneDevice() = default;

StepResult OneDevice::step(const Window& window, const std::vector<HostBatch>& batches) {
  for (auto& replica : replicas_) {
    replica->network->train();
    replica->network->zero_grad();
    replica->loss = 0;
  }
  if (division_.together) {
    walk_together(window, batches);
  } else {
    for (auto& replica : replicas_) walk(*replica, window, batches);
  }
  StepResult result;
  for (const auto& replica : replicas_) result.loss += replica->loss;
  add_gradients();
  result.grad_norm = norm();
  const double clip = settings_.clip_grad;
  optimizer_->set_lr(window.lr);
  if (window.images > 0) {
    optimizer_->step(clip > 0 ? std::min(1.0, clip / (result.grad_norm + 1e-6)) : 1.0);
  }
  copy_weights();
  current_stream(device_).synchronize();  // gradients that were the replicas' own go now
  return result;
}

void OneDevice::walk(Replica& replica, const Window& window,
                     const std::vector<HostBatch>& batches) {
  const double scale = window.images > 0 ? 1 / static_cast<double>(window.images) : 0;
  for (std::size_t b = 0; b < batches.size(); ++b) {
    walk_batch(replica, batches[b], window.shares[b], scale);
    commit_batch_norms(*replica.network);
  }
}

void OneDevice::walk_batch(Replica& replica, const HostBatch& batch,
                           const std::vector<std::int64_t>& shares, double scale) {
  const auto r = static_cast<std::size_t>(replica.number);
  std::vector<std::int64_t> parts = split_batch(shares[r], division_.rule);
  // Those empty here alone join the statistics of the others.
  parts.resize(static_cast<std::size_t>(passes_of(shares, division_)[r]));
  std::int64_t image = batch.image_start(replica.number);
  std::int64_t label = batch.label_start(replica.number);
  for (const std::int64_t images : parts) {
    const Tensor x = rows(batch.x, image, batch.shape.with(0, images), {dtype_, device_});
    const Tensor loss = loss_of(batch, label, images, replica.network->forward(x), scale);
    loss.backward();
    replica.loss += loss.item();
    image += images;
    label += images;
    if (!division_.together) alive_();
  }
}

void OneDevice::walk_together(const Window& window, const std::vector<HostBatch>& batches) {
  // The replicas' streams know nothing of what this thread has queued: first values, updates.
  current_stream(device_).synchronize();
  const auto count = static_cast<int>(replicas_.size());
  WorkerThreads threads(count, [this](int worker, const std::exception_ptr& failure) {
    replicas_[static_cast<std::size_t>(worker)]->group->abort(to_error(failure));
    return failure;
  });
  threads.run([&](int i) {
    Replica& replica = *replicas_[static_cast<std::size_t>(i)];
    const StreamScope scope(*replica.stream);
    walk(replica, window, batches);
    replica.stream->synchronize();
  });
  alive_();
}

Tensor OneDevice::loss_of(const HostBatch& batch, std::int64_t begin, std::int64_t images,
                          const Tensor& output, double scale) const {
  if (settings_.loss != "mse") {
    const Tensor labels =
        Tensor::from_host(batch.labels.data() + begin, {images}, {DType::i64, device_});
    return cross_entropy(output, labels,
                         {.label_smoothing = settings_.label_smoothing, .scale = scale});
  }
  const std::int64_t width = batch.target_width;
  const Tensor target =
      rows(batch.targets, begin, {images, width}, {parameter_type(dtype_), device_});
  return mse_loss(output, target, scale / static_cast<double>(width));
}

// In the order of replicas; zeros stand for gradients that one alone does not have.
void OneDevice::add_gradients() {
  const NoGradScope no_grad;
  const NamedTensors sums = replicas_.front()->network->named_parameters();
  std::vector<NamedTensors> others;
  for (std::size_t r = 1; r < replicas_.size(); ++r) {
    others.push_back(replicas_[r]->network->named_parameters());
  }
  for (std::size_t i = 0; i < sums.size(); ++i) {
    Tensor& sum = sums[i].second.grad();
    const bool any = std::any_of(others.begin(), others.end(), [i](const NamedTensors& other) {
      return other[i].second.grad().defined();
    });
    if (!sum.defined() && !any) continue;
    if (!sum.defined()) sum = Tensor::zeros_like(sums[i].second.detach());
    for (const NamedTensors& other : others) {
      Tensor& mine = other[i].second.grad();
      sum = add(sum.detach(), mine.defined() ? mine.detach() : Tensor::zeros_like(sum));
      mine = Tensor();
    }
  }
}

double OneDevice::norm() const {
  std::vector<Tensor> gradients;
  for (const auto& [name, gradient] : this->gradients()) {
    if (gradient.defined()) gradients.push_back(gradient);
  }
  const std::vector<double> squares = squared_norms(gradients);
  return std::sqrt(std::accumulate(squares.begin(), squares.end(), 0.0));
}

void OneDevice::copy_weights() {
  const NamedTensors from = weights();
  for (std::size_t r = 1; r < replicas_.size(); ++r) {
    NamedTensors to = replicas_[r]->network->named_parameters();
    for (std::size_t i = 0; i < to.size(); ++i) to[i].second.copy_(from[i].second);
  }
}

NamedTensors OneDevice::gradients() const {
  NamedTensors all = replicas_.front()->network->named_parameters();
  for (auto& [name, tensor] : all) {
    const Tensor gradient = tensor.grad();
    tensor = gradient.defined() ? gradient.detach() : Tensor();
  }
  return all;
}

NamedTensors OneDevice::weights() const {
  NamedTensors all = replicas_.front()->network->named_parameters();
  for (auto& [name, tensor] : all) tensor = tensor.detach();
  return all;
}

NamedTensors OneDevice::statistics(int replica) const {
  const Network& network = *replicas_.at(static_cast<std::size_t>(replica))->network;
  return statistics_of(network);
}

LayerWatch::Outputs OneDevice::take_outputs(int replica) {
  return replicas_.at(static_cast<std::size_t>(replica))->watch->take();
}

}  // namespace convoy
