#include "engine/parallel/distributed_data_parallel.h"

#include <algorithm>
#include <utility>

#include "comm/process_group.h"
#include "engine/autograd/backward.h"
#include "engine/autograd/grad_mode.h"
#include "engine/autograd/node.h"
#include "engine/nn/layers.h"
#include "kernels/base/context.h"
#include "kernels/base/error.h"

namespace convoy {
namespace {

constexpr const char* kName = "DistributedDataParallel";

std::vector<Tensor> values_of(const NamedTensors& named) {
  std::vector<Tensor> values;
  for (const auto& [name, tensor] : named) values.push_back(tensor);
  return values;
}

std::int64_t images_of(const std::vector<Tensor>& inputs) {
  CONVOY_CHECK(!inputs.empty() && inputs[0].defined() && inputs[0].shape().rank() >= 1,
               "{}: the input is {}, expected a batch", kName,
               inputs.empty() ? "absent" : describe(inputs[0]));
  return inputs[0].size(0);
}

bool normalises_over_ranks(Module& module) {
  bool found = false;
  module.for_each([&](const std::string&, Module& each) {
    const auto* norm = dynamic_cast<BatchNorm2d*>(&each);
    found = found || (norm && norm->group());
  });
  return found;
}

Tensor times(const Tensor& x, std::int64_t factor) {
  return x * Tensor::full(x.shape(), static_cast<double>(factor), x.options());
}

// One forward.
struct Pass {
  std::int64_t images = 0;
  bool synchronizes = true;
  // Within the module ranks add up gradients of their images, so these need one scale from the
  // outputs on. Otherwise it is enough to weigh what comes out.
  bool weighs_outputs = false;
};

}  // namespace

// From the first backward after a sum to the end of the one that makes the next. It is told by
// nodes at the module's outputs, which are the first of the module to run in a backward.
class DistributedDataParallel::Window : public std::enable_shared_from_this<Window> {
 public:
  Window(const NamedTensors& parameters, Communicator& communicator, const ReducerOptions& options)
      : reducer_(parameters, communicator, options) {}

  Reducer& reducer() { return reducer_; }
  // y, whose backward comes by here first.
  Tensor watch(const Tensor& y, const Pass& pass);

 private:
  void on_output_gradient(const Pass& pass);
  GradientShare share(const Pass& pass) const;
  void finish();

  Reducer reducer_;
  std::int64_t images_ = 0;  // of the backwards so far
  int backwards_ = 0;
  std::weak_ptr<char> backward_;  // lives as long as the backward that runs
};

Tensor DistributedDataParallel::Window::watch(const Tensor& y, const Pass& pass) {
  auto half = [pass, weak = weak_from_this()](const Tensor& dy,
                                              const std::vector<bool>&) -> Gradients {
    const std::shared_ptr<Window> window = weak.lock();
    CONVOY_CHECK(window, "{}: backward after it is gone: its gradients would not be summed", kName);
    window->on_output_gradient(pass);
    return {pass.weighs_outputs ? times(dy, pass.images) : dy};
  };
  return record(kName, y.detach(), {y}, half);
}

// Several outputs may be in one backward: its images are those of the first one that is met.
void DistributedDataParallel::Window::on_output_gradient(const Pass& pass) {
  if (backward_.expired()) {
    CONVOY_CHECK(
        !reducer_.is_armed(),
        "{}: the backward before this one failed, and gradients were not summed: the ranks "
        "have come apart",
        kName);
    const auto running = std::make_shared<char>();
    // Goes when the backward ends, in whatever way.
    at_backward_end([weak = weak_from_this(), running] {
      if (const auto window = weak.lock()) window->finish();
    });
    backward_ = running;
    images_ += pass.images;
    ++backwards_;
  }
  if (pass.synchronizes && !reducer_.is_armed()) reducer_.arm(share(pass));
}

GradientShare DistributedDataParallel::Window::share(const Pass& pass) const {
  const auto images = static_cast<double>(images_);
  if (pass.weighs_outputs) return {.weight = 1, .part = images / backwards_};
  return {.weight = images, .part = images};
}

void DistributedDataParallel::Window::finish() {
  if (!reducer_.is_armed()) return;
  images_ = 0;
  backwards_ = 0;
  reducer_.finish();
}

DistributedDataParallel::DistributedDataParallel(std::shared_ptr<Module> module,
                                                 Communicator& communicator,
                                                 DistributedOptions options)
    : options_(std::move(options)) {
  CONVOY_CHECK(module, "{}: no module given", kName);
  module_ = register_module("", std::move(module));
  check_devices();
  const NamedTensors parameters = module_->named_parameters();
  window_ = std::make_shared<Window>(
      parameters, communicator, ReducerOptions{options_.buckets, options_.find_unused_parameters});
  NamedTensors state = parameters;
  for (auto& entry : module_->named_buffers()) state.push_back(std::move(entry));
  window_->reducer().check_alike("value", state);
  window_->reducer().broadcast(values_of(parameters));
  broadcast_buffers();
}

DistributedDataParallel::DistributedDataParallel(std::shared_ptr<Module> module,
                                                 DistributedOptions options)
    : DistributedDataParallel(std::move(module), convoy::communicator(), std::move(options)) {}

DistributedDataParallel::~DistributedDataParallel() = default;

void DistributedDataParallel::check_devices() const {
  const std::vector<Device>& devices = options_.device_ids;
  for (const Device& device : devices) context(device);  // `usage` if there is none
  if (devices.empty()) return;
  for (const auto& [name, parameter] : module_->named_parameters()) {
    CONVOY_CHECK(std::find(devices.begin(), devices.end(), parameter.device()) != devices.end(),
                 "{}: {} is on {}, which device_ids does not name: move the module with .to()",
                 kName, name, to_string(parameter.device()));
  }
}

std::vector<Tensor> DistributedDataParallel::on_first_device(
    const std::vector<Tensor>& inputs) const {
  if (options_.device_ids.empty()) return inputs;
  std::vector<Tensor> moved;
  for (const Tensor& input : inputs) moved.push_back(input.to(options_.device_ids[0]));
  return moved;
}

Tensor DistributedDataParallel::forward_all(const std::vector<Tensor>& inputs) {
  const std::int64_t images = images_of(inputs);
  const bool trains = module_->is_training() && grad_enabled() && synchronizes_;
  if (trains && options_.broadcast_buffers) {
    window_->reducer().broadcast(values_of(module_->named_buffers()));
  }
  const Tensor y = on_first_device({module_->forward_all(on_first_device(inputs))})[0];
  return window_->watch(y, {images, synchronizes_, normalises_over_ranks(*module_)});
}

void DistributedDataParallel::broadcast_buffers() {
  Reducer& reducer = window_->reducer();
  reducer.broadcast(values_of(module_->named_buffers()));
  const auto counters = module_->named_counters();
  if (counters.empty()) return;
  std::vector<std::int64_t> counts;
  for (const auto& [name, counter] : counters) counts.push_back(*counter);
  const Tensor shared = Tensor::from(counts, {std::ssize(counts)},
                                     module_->named_parameters().front().second.device());
  reducer.broadcast({shared});
  counts = shared.to_vector<std::int64_t>();
  for (std::size_t i = 0; i < counts.size(); ++i) *counters[i].second = counts[i];
}

DistributedDataParallel::NoSyncScope DistributedDataParallel::no_sync() {
  return NoSyncScope(*this);
}

ReduceTimes DistributedDataParallel::reduce_times() const {
  return window_->reducer().times();
}

std::string DistributedDataParallel::describe() const {
  return fmt::format("{}({})", kName, module_->describe());
}

DistributedDataParallel::NoSyncScope::NoSyncScope(DistributedDataParallel& model)
    : model_(model), outer_(std::exchange(model.synchronizes_, false)) {}

DistributedDataParallel::NoSyncScope::~NoSyncScope() {
  model_.synchronizes_ = outer_;
}

}  // namespace convoy
