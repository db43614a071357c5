#include "engine/train/measured_costs.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <functional>
#include <thread>

#include "comm/link_test.h"
#include "engine/nn/layers.h"
#include "engine/optim/optimizer.h"
#include "engine/parallel/pipeline/tensor_link.h"
#include "engine/train/defaults.h"
#include "engine/train/setup.h"
#include "kernels/base/context.h"
#include "kernels/base/error.h"
#include "kernels/base/host_context.h"

namespace convoy {
namespace {

using Clock = std::chrono::steady_clock;

// What the host spends on an instruction of a schedule: looking it up, waking and being woken.
constexpr double kInstructionSeconds = 30e-6;
constexpr double kProfileBudget = 20;
constexpr std::int64_t kLargeReduce = 4 << 20;  // bytes
constexpr std::int64_t kSmallReduce = 4 << 10;
constexpr int kReduceRepeats = 5;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// work(0) to work(count - 1), each on a thread of its own; the first failure is thrown.
void run_at_once(std::size_t count, const std::function<void(std::size_t)>& work) {
  std::vector<std::exception_ptr> failures(count);
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < count; ++i) {
      threads.emplace_back([&, i] {
        try {
          work(i);
        } catch (...) {
          failures[i] = std::current_exception();
        }
      });
    }
  }
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

// Devices of the same type as one: the mean of their times.
Profile mean_of(const std::vector<Profile>& profiles, const std::vector<int>& kinds, int kind) {
  Profile mean;
  double count = 0;
  for (std::size_t i = 0; i < profiles.size(); ++i) {
    if (kinds[i] != kind) continue;
    if (count == 0) mean = profiles[i];
    for (std::size_t node = 0; node < mean.nodes.size() && count > 0; ++node) {
      PhaseTimes& sum = mean.nodes[node].times.front();
      const PhaseTimes& times = profiles[i].nodes[node].times.front();
      sum.forward += times.forward;
      sum.backward_input += times.backward_input;
      sum.backward_weight += times.backward_weight;
    }
    ++count;
  }
  for (NodeCost& node : mean.nodes) {
    PhaseTimes& sum = node.times.front();
    sum = {sum.forward / count, sum.backward_input / count, sum.backward_weight / count};
  }
  return mean;
}

std::vector<int> kinds_of(const std::vector<std::string>& devices) {
  std::vector<DeviceType> types;
  std::vector<int> kinds;
  for (const std::string& name : devices) {
    const DeviceType type = Device(name).type;
    const auto found = std::find(types.begin(), types.end(), type);
    kinds.push_back(static_cast<int>(found - types.begin()));
    if (found == types.end()) types.push_back(type);
  }
  return kinds;
}

}  // namespace

double optimizer_states(const Settings& settings) {
  if (settings.optimizer == "adamw") return 2;
  return settings.momentum > 0 ? 1 : 0;
}

MeasuredCosts::~MeasuredCosts() {
  finish();
}

void MeasuredCosts::finish() {
  networks_.clear();
  for (std::size_t i = 0; i < settings_.devices.size(); ++i) prepare_device(settings_, i);
}

MeasuredCosts::MeasuredCosts(const TrainingJob& job, const Ranks& ranks)
    : job_(job),
      settings_(resolved_settings(job.settings, job.network->takes_rows())),
      ranks_(ranks),
      kinds_(kinds_of(job.settings.devices)) {
  for (std::size_t i = 0; i < settings_.devices.size(); ++i) {
    CONVOY_CHECK(
        std::count(settings_.devices.begin(), settings_.devices.end(), settings_.devices[i]) == 1,
        "plan: {} is named twice, but devices are measured as if each worker had its own",
        settings_.devices[i]);
    // A network that no device holds whole is measured too: the planner minds the caps.
    prepare_device(settings_, i).memory().set_cap(0);
    networks_.push_back(job.make_network());
    set_batch_norm_mode(*networks_.back(), batch_norm_mode(settings_));
    networks_.back()->materialize(Device(settings_.devices[i]),
                                  parameter_type(dtype_of_precision(settings_)), settings_.seed);
  }
  machine_.workers = ranks.workers();
  machine_.host_s = kInstructionSeconds;
  const int last_kind = *std::max_element(kinds_.begin(), kinds_.end());
  if (last_kind > 0) machine_.kinds = kinds_;
  if (ranks.workers() > 1) machine_.single_kind = last_kind + 1;
  if (settings_.device_memory) {
    machine_.caps.assign(static_cast<std::size_t>(last_kind) + 2,
                         static_cast<double>(*settings_.device_memory));
  }
  CONVOY_CHECK(last_kind == 0 || ranks.processes() == 1,
               "plan: --devices of several kinds in several processes, expected one kind");
  measure_optimizer();
  if (ranks.workers() == 1) return;
  machine_.reduce_overlaps = has_spare_cores(settings_);
  measure_links();
  measure_all_reduce();
}

ProfileOptions MeasuredCosts::options_for(std::size_t device, std::int64_t images) const {
  ProfileOptions options;
  options.device = Device(settings_.devices[device]);
  options.dtype = dtype_of_precision(settings_);
  options.images = images;
  options.image_size = job_.image_size;
  options.mse = settings_.loss == "mse";
  options.states = optimizer_states(settings_);
  options.budget_s = kProfileBudget;
  return options;
}

std::vector<Profile> MeasuredCosts::profiles_of_all(std::int64_t images) {
  std::vector<Profile> profiles(networks_.size());
  run_at_once(networks_.size(), [&](std::size_t i) {
    profiles[i] = profile_network(*networks_[i], options_for(i, images));
  });
  return profiles;
}

void MeasuredCosts::measure(std::int64_t images) {
  const Clock::time_point start = Clock::now();
  ranks_.barrier();
  const std::vector<Profile> profiles = profiles_of_all(images);
  std::vector<Profile> kinds;
  for (int kind = 0; kind <= *std::max_element(kinds_.begin(), kinds_.end()); ++kind) {
    kinds.push_back(mean_of(profiles, kinds_, kind));
  }
  together_.push_back(with_kinds(kinds));
  ranks_.barrier();
  if (ranks_.workers() > 1) {
    alone_.push_back(ranks_.leads() ? profile_network(*networks_.front(), options_for(0, images))
                                    : kinds.front());
    ranks_.barrier();
  }
  last_s_ = seconds_since(start);
}

bool MeasuredCosts::has(std::int64_t images) const {
  return std::any_of(together_.begin(), together_.end(),
                     [images](const Profile& profile) { return profile.images == images; });
}

double MeasuredCosts::seconds_for(std::int64_t images) const {
  if (together_.empty()) return 0;
  return last_s_ * static_cast<double>(images) / static_cast<double>(together_.back().images);
}

std::vector<NodeCost> MeasuredCosts::nodes_at(std::int64_t images) const {
  Profile profile = profile_at(together_, images);
  if (!alone_.empty()) profile = with_kinds({profile, profile_at(alone_, images)});
  return profile.nodes;
}

// Each worker and the one beside it, both ways at once.
Link measured_link(Group& group, bool spare_cores) {
  std::vector<LinkReport> reports(static_cast<std::size_t>(group.local_workers()));
  run_at_once(reports.size(), [&](std::size_t local) {
    HostCommunicator& worker = group.worker(static_cast<int>(local));
    const int peer = worker.rank() ^ 1;
    worker.barrier();  // the test has short limits
    if (peer >= worker.size()) return;
    reports[local] = test_links(worker, {peer}, kLinkTestTag).at(0);
  });
  const auto& [from, to, latency_s, bytes_per_s, offset] = reports.front();
  Link link{.latency_s = latency_s, .bytes_per_s = bytes_per_s};
  // The test keeps both ends busy with a message out and one in at a time.
  if (!spare_cores && bytes_per_s > 0) link.host_s_per_byte = 1 / (2 * bytes_per_s);
  return link;
}

void MeasuredCosts::measure_links() {
  machine_.inside = machine_.between = measured_link(*ranks_.group(), has_spare_cores(settings_));
}

void MeasuredCosts::measure_all_reduce() {
  Group& group = *ranks_.group();
  double small = 0, large = 0;
  run_at_once(static_cast<std::size_t>(group.local_workers()), [&](std::size_t local) {
    HostCommunicator& worker = group.worker(static_cast<int>(local));
    // Where gradients lie.
    const std::shared_ptr<std::byte> memory = worker.make_memory(kLargeReduce);
    std::vector<std::byte> own(memory ? 0 : kLargeReduce);
    std::byte* values = memory ? memory.get() : own.data();
    for (const std::int64_t bytes : {kSmallReduce, kLargeReduce}) {
      std::vector<double> seconds;
      for (int i = 0; i <= kReduceRepeats; ++i) {
        worker.barrier();
        const Clock::time_point start = Clock::now();
        worker.all_reduce_now(values, values, bytes / static_cast<std::int64_t>(sizeof(float)),
                              DType::f32, Reduction::sum);
        if (i > 0) seconds.push_back(seconds_since(start));
      }
      if (local == 0) (bytes == kSmallReduce ? small : large) = median(seconds);
    }
  });
  const double others = group.size() - 1;
  const double moved = 2 * others / group.size() * static_cast<double>(kLargeReduce);
  machine_.reduce_inside = Link{small / (2 * others), moved / std::max(1e-9, large - small)};
}

// Of SGD with momentum on zeros, which changes nothing; other optimizers move other tensors.
void MeasuredCosts::measure_optimizer() {
  Network& network = *networks_.front();
  const Device home = network.parameters().front().device();
  const Device device(settings_.devices.front());
  network.to(parameter_type(dtype_of_precision(settings_)));
  double bytes = 0;
  std::vector<double> seconds;
  try {
    network.to(device);
    for (Tensor& parameter : network.parameters()) {
      parameter.grad() = Tensor::zeros_like(parameter);
      bytes += static_cast<double>(parameter.numel() * size_of(parameter.dtype()));
    }
    Sgd sgd(network.named_parameters(), {.lr = 0, .momentum = 0.9});
    for (int i = 0; i < 4; ++i) {
      const Clock::time_point start = Clock::now();
      sgd.step();
      context(device).default_stream().synchronize();
      if (i > 0) seconds.push_back(seconds_since(start));
    }
  } catch (const Error& error) {  // a network too big for one device: its parts may fit
    if (error.kind() != ErrorKind::resource) throw;
  }
  network.zero_grad();
  network.to(home);
  const double tensors =
      (3 + 2 * optimizer_states(settings_)) / 5;  // read and written, beside SGD's five
  machine_.step_s_per_byte = {seconds.empty() ? 0 : median(seconds) / bytes * tensors};
}

}  // namespace convoy
