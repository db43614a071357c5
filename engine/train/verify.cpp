#include "engine/train/verify.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

#include "engine/nn/state.h"
#include "engine/train/batch_source.h"
#include "engine/train/compared_state.h"
#include "engine/train/defaults.h"
#include "engine/train/difference.h"
#include "engine/train/evaluate.h"
#include "engine/train/one_device.h"
#include "engine/train/run_plan.h"
#include "engine/train/setup.h"
#include "kernels/base/context.h"
#include "kernels/base/error.h"

namespace convoy {
namespace {

// A device like the first worker's; where devices are cores of this machine one of its own, so that
// a cap of memory holds for the worker alone.
Device oracle_device(const Settings& settings) {
  const std::vector<std::string>& devices = settings.devices;
  const DeviceContext& worker = prepare_device(settings);
  const Device first = worker.device();
  if (first.type != DeviceType::cpu && first.type != DeviceType::ref) return first;
  Device own(first.type, 0);
  for (const std::string& name : devices) own.index = std::max(own.index, Device(name).index + 1);
  context(own).set_threads(worker.threads());
  return own;
}

std::string join(const std::vector<std::size_t>& numbers) {
  std::string text;
  for (const std::size_t number : numbers) text += std::to_string(number) + " ";
  return text;
}

std::vector<std::size_t> split(const std::string& text) {
  std::vector<std::size_t> numbers;
  for (const char* next = text.data(); next < text.data() + text.size(); ++next) {
    std::size_t number = 0;
    next = std::from_chars(next, text.data() + text.size(), number).ptr;
    numbers.push_back(number);
  }
  return numbers;
}

class Verification {
 public:
  Verification(const TrainingJob& job, const VerifyOptions& options);
  VerifyResult run();

 private:
  TrainingJob observed(TrainingJob job) const;
  void check_devices() const;
  int replica_of(const Device& device) const;
  std::unique_ptr<BatchSource> make_source() const;
  void prepare_one_device();
  Window next_window();
  void step();
  bool is_known() const { return options_.known && !options_.known->steps.empty(); }
  std::vector<HeldEntry> compare_numbers(const StepResult& mine, const Window& window);
  StepResult one_device_step(const Window& window);
  std::vector<HeldEntry> one_device_entries();
  void compare(const std::vector<HeldEntry>& mine, const std::vector<HeldEntry>& right);

  const VerifyOptions options_;
  std::shared_ptr<LayerWatch> watch_ = std::make_shared<LayerWatch>();
  const TrainingJob plain_;
  const TrainingJob job_;
  const Ranks ranks_;
  const int replicas_;
  const RunPlan plan_;
  std::unique_ptr<StepRunner> runner_;
  TrainedState trained_;
  std::unique_ptr<BatchSource> source_;
  std::unique_ptr<OneDevice> one_;      // of the leader
  std::unique_ptr<Loader> one_loader_;  // likewise: the images of all replicas
  ProgressState state_;
  VerifyResult result_;
  Differences differences_{result_};
};

TrainingJob resolved(TrainingJob job, std::int64_t steps) {
  job.settings = resolved_settings(job.settings, job.network->takes_rows());
  CONVOY_CHECK(steps >= 1, "verify: {} steps, expected at least 1", steps);
  job.settings.steps = steps;
  CONVOY_CHECK(job.make_network, "verify: nothing makes the network of the one device");
  if (!job.settings.weights.empty()) {
    job.network->materialize(Device(), DType::f32, job.settings.seed);
    load_weights(*job.network, job.settings.weights);
  }
  return job;
}

Verification::Verification(const TrainingJob& job, const VerifyOptions& options)
    : options_(options),
      plain_(resolved(job, options.steps)),
      job_(observed(plain_)),
      ranks_(ranks_of(job)),
      replicas_(ranks_.replicas()),
      plan_(plain_, division_of(plain_.settings, replicas_)),
      trained_(watch_, [this](const Device& device) { return replica_of(device); }) {
  check_devices();
  if (ranks_.leads() && !is_known()) prepare_one_device();
  runner_ = options.make(job_);
  watch_->take();  // what choosing cuts has run
  source_ = make_source();
}

// The layout's networks: watched, and all with the same weights.
TrainingJob Verification::observed(TrainingJob job) const {
  const NamedTensors weights =
      job.settings.weights.empty() ? NamedTensors() : job.network->state_dict();
  job.network = watched(*job.network, watch_);
  job.make_network = [make = job.make_network, watch = watch_, weights] {
    std::shared_ptr<Network> network = make();
    if (!weights.empty()) network->load_state_dict(weights);
    return watched(*network, watch);
  };
  return job;
}

// A layer's outputs are told apart by their devices.
void Verification::check_devices() const {
  std::map<Device, int> replicas;
  for (std::size_t i = 0; i < job_.settings.devices.size(); ++i) {
    const Device device(job_.settings.devices[i]);
    const int replica = ranks_.layout().replica_of(ranks_.first_worker() + static_cast<int>(i));
    CONVOY_CHECK(replicas.try_emplace(device, replica).first->second == replica,
                 "verify: {} is named twice, for two replicas, which it tells apart by their "
                 "devices",
                 to_string(device));
  }
}

int Verification::replica_of(const Device& device) const {
  const std::vector<std::string>& names = job_.settings.devices;
  const auto found = std::find_if(names.begin(), names.end(),
                                  [&](const std::string& name) { return Device(name) == device; });
  CONVOY_DCHECK(found != names.end(), "{} is no worker's device", to_string(device));
  const int rank = ranks_.first_worker() + static_cast<int>(found - names.begin());
  return ranks_.layout().replica_of(rank);
}

std::unique_ptr<BatchSource> Verification::make_source() const {
  const Settings& settings = job_.settings;
  BatchSourceOptions options;
  options.division = plan_.division();
  options.least_group = plan_.least_group();
  options.skips = settings.bad_images == "skip";
  options.local_workers = ranks_.local_workers();
  options.warn = [](const std::string&) {};
  auto source = std::make_unique<BatchSource>(make_loader(job_, job_.data.train, true),
                                              settings.batch, ranks_, std::move(options));
  source->start_epoch(state_.epoch, 0);
  return source;
}

void Verification::prepare_one_device() {
  const NamedTensors weights =
      plain_.settings.weights.empty() ? NamedTensors() : plain_.network->state_dict();
  one_ = std::make_unique<OneDevice>(plain_, replicas_, oracle_device(plain_.settings), weights,
                                     [this] { ranks_.enter(Activity::computing); });
  LoaderOptions options = loader_options(plain_.settings, plain_.image_size, true);
  options.replicas = replicas_;
  options.images = options.labels = {0, replicas_};
  options.normalisation = plain_.normalisation.value_or(plain_.data.train->normalisation());
  const bool images = plain_.data.train->kind() == SampleKind::images;
  if (plain_.settings.loss == "mse" && images) options.one_hot = plain_.network->out();
  one_loader_ = std::make_unique<Loader>(plain_.data.train, options);
  one_loader_->start_epoch(state_.epoch, 0);
}

VerifyResult Verification::run() {
  while (state_.step < options_.steps) step();
  result_.equal = ranks_.from_leader(result_.equal ? "equal" : "differs") == "equal";
  ranks_.enter(Activity::finished);
  return result_;
}

Window Verification::next_window() {
  if (plan_.evaluation_is_open(state_)) {
    state_.images_done = 0;
    source_->start_epoch(++state_.epoch, 0);
    if (one_loader_) one_loader_->start_epoch(state_.epoch, 0);
  }
  const WindowPlan plan = plan_.next_window(state_);
  Window window{++state_.step, 0, plan_.lr_at(state_.step)};
  ranks_.begin_step(state_.step);
  source_->open(plan, window);
  state_.images_done += plan.images;
  return window;
}

void Verification::step() {
  const Window window = next_window();
  const StepResult mine = runner_->step(window, *source_);
  const std::vector<HeldEntry> held = trained_.read(*plain_.network);
  std::vector<HeldEntry> right;
  differences_.begin_step(state_.step);
  if (ranks_.leads()) right = compare_numbers(mine, window);
  compare(held, right);
  differences_.end_step();
}

// Returns the one device's entries.
std::vector<HeldEntry> Verification::compare_numbers(const StepResult& mine, const Window& window) {
  std::vector<HeldEntry> entries;
  if (!one_) {
    const auto& known = options_.known->steps.at(static_cast<std::size_t>(state_.step - 1));
    for (const StateEntry& entry : known.entries) entries.push_back({entry, Tensor()});
    differences_.numbers(mine, known.result);
    return entries;
  }
  const StepResult right = one_device_step(window);
  entries = one_device_entries();
  differences_.numbers(mine, right);
  if (!options_.known) return entries;
  KnownSteps::Step& known = options_.known->steps.emplace_back();
  known.result = right;
  for (const HeldEntry& held : entries) known.entries.push_back(held.entry);
  return entries;
}

StepResult Verification::one_device_step(const Window& window) {
  std::vector<HostBatch> batches;
  for (std::size_t i = 0; i < window.shares.size(); ++i) {
    std::optional<HostBatch> batch = one_loader_->next();
    CONVOY_DCHECK(batch.has_value(), "the epoch ended before its last batch");
    batches.push_back(std::move(*batch));
    ranks_.enter(Activity::computing);
  }
  return one_->step(window, batches);
}

std::vector<HeldEntry> Verification::one_device_entries() {
  const Network& network = *plain_.network;
  auto layer_of = [&](const std::string& tensor) {
    const std::string layer = tensor.substr(0, tensor.rfind('.'));
    const auto& layers = network.layers();
    const auto found = std::find_if(layers.begin(), layers.end(),
                                    [&](const auto& each) { return each.name == layer; });
    return static_cast<int>(found - layers.begin());
  };
  std::vector<HeldEntry> entries;
  auto add = [&](StatePart part, int replica, const NamedTensors& tensors) {
    for (const auto& [name, tensor] : tensors) {
      if (tensor.defined()) {
        entries.push_back(held_entry(part, replica, layer_of(name), name, tensor));
      }
    }
  };
  add(StatePart::gradient, 0, one_->gradients());
  add(StatePart::weight, 0, one_->weights());
  const std::size_t common = entries.size();  // of all replicas
  for (int replica = 0; replica < replicas_; ++replica) {
    for (std::size_t i = 0; replica > 0 && i < common; ++i) {
      entries.push_back(entries[i]);
      entries.back().entry.replica = replica;
    }
    for (HeldEntry& held : output_entries(one_->take_outputs(replica), network,
                                          [replica](const Device&) { return replica; })) {
      entries.push_back(std::move(held));
    }
    add(StatePart::statistic, replica, one_->statistics(replica));
  }
  return entries;
}

void Verification::compare(const std::vector<HeldEntry>& mine,
                           const std::vector<HeldEntry>& right) {
  const std::vector<StateEntry> all = all_entries(ranks_, mine);
  std::string wanted;
  if (ranks_.leads()) wanted = join(differences_.hashes(all, right, *plain_.network));
  for (const std::size_t place : split(ranks_.from_leader(wanted))) {
    const std::vector<std::byte> values = values_of(ranks_, all[place], mine);
    if (ranks_.leads()) differences_.values(all[place], values);
  }
}

}  // namespace

VerifyResult verify(const TrainingJob& job, const VerifyOptions& options) {
  return Verification(job, options).run();
}

}  // namespace convoy
