#include "engine/train/pipeline_runner.h"

#include <algorithm>
#include <optional>
#include <sstream>
#include <unordered_map>

#include "comm/host_values.h"
#include "engine/io/hash.h"
#include "engine/train/array_transfer.h"
#include "kernels/base/error.h"

namespace convoy {
namespace {

constexpr std::size_t kHashDigits = 32;
constexpr int kOutputsTag = 901;

std::exception_ptr with_rank(const std::exception_ptr& failure, int rank, HostCommunicator& group) {
  Error error = to_error(failure);
  if (!error.rank()) error = error.with_rank(rank);
  group.abort(error);
  return std::make_exception_ptr(error);
}

// With as many slots as both ends of a link have. On GPUs without a cap alone: that counts no
// parcels, which are in the memory of the GPU.
std::shared_ptr<ParcelLanes> lanes_of(const Group& group, const std::vector<WorkerParts>& workers,
                                      int slots) {
  std::vector<Device> devices;
  for (const WorkerParts& worker : workers) {
    const Device& device = worker.options.device;
    if (is_gpu(device) && worker.options.device_memory > 0) return nullptr;
    devices.push_back(device);
  }
  return std::make_shared<ParcelLanes>(group.first_rank(), std::move(devices), 2 * slots);
}

// Workers that share a device must not wait for each other in one queue.
std::vector<std::unique_ptr<Stream>> streams_of(const std::vector<WorkerParts>& workers) {
  std::vector<std::unique_ptr<Stream>> streams;
  for (const WorkerParts& worker : workers) {
    const Device& device = worker.options.device;
    const auto sharers =
        std::count_if(workers.begin(), workers.end(),
                      [&](const WorkerParts& other) { return other.options.device == device; });
    streams.push_back(sharers > 1 ? context(device).make_stream() : nullptr);
  }
  return streams;
}

PipelineSetup setup_of(const std::vector<WorkerParts>& workers, const PipelineOptions& options) {
  CONVOY_DCHECK(!workers.empty(), "pipeline: no workers");
  PipelineSetup setup;
  setup.layout = options.layout;
  setup.map = map_stages(*workers.front().network, options.cuts, options.sample);
  setup.together = options.division.together;
  setup.buckets = options.buckets;
  setup.slots = options.slots;
  setup.nccl = options.nccl;
  setup.timeout = options.comm_timeout;
  return setup;
}

void check_layout(const Group& group, const std::vector<WorkerParts>& workers,
                  const PipelineOptions& options) {
  const Layout& layout = options.layout;
  CONVOY_CHECK(std::ssize(workers) == group.local_workers(),
               "pipeline: {} networks for {} workers of this process", workers.size(),
               group.local_workers());
  CONVOY_CHECK(layout.world() == group.size(),
               "pipeline: {} replicas of {} workers need {} workers, there are {}", layout.replicas,
               layout.workers_per_replica, layout.world(), group.size());
  CONVOY_CHECK(std::ssize(options.cuts) + 1 == layout.stages(),
               "pipeline: {} cuts for {} stages, expected {}", options.cuts.size(), layout.stages(),
               layout.stages() - 1);
}

}  // namespace

PipelineRunner::PipelineRunner(Group& group, std::vector<WorkerParts> workers,
                               const PipelineOptions& options)
    : group_(group),
      options_(options),
      width_(workers.front().network->out()),
      dtype_(workers.front().options.dtype),
      device_memory_(workers.front().options.device_memory),
      tables_(options.layout, options.schedule, options.slots),
      threads_(group.local_workers(), [&group](int worker, const std::exception_ptr& failure) {
        return with_rank(failure, group.first_rank() + worker, group.worker(worker));
      }) {
  check_layout(group, workers, options);
  setup_ = setup_of(workers, options);
  setup_.lanes = lanes_of(group, workers, options.slots);
  streams_ = streams_of(workers);
  workers_.resize(workers.size());
  run_each([&](int i) {
    const auto place = static_cast<std::size_t>(i);
    workers_[place] = std::make_unique<StageWorker>(group, i, setup_, std::move(workers[place]));
  });
}

PipelineRunner::~PipelineRunner() = default;

void PipelineRunner::run_each(const std::function<void(int)>& work) {
  threads_.run([&](int i) {
    std::optional<StreamScope> scope;
    if (Stream* own = streams_[static_cast<std::size_t>(i)].get()) scope.emplace(*own);
    work(i);
  });
}

void PipelineRunner::run(const std::function<void(StageWorker&)>& work) {
  run_each([&](int i) { work(*workers_[static_cast<std::size_t>(i)]); });
}

bool PipelineRunner::shares_devices() const {
  return std::any_of(streams_.begin(), streams_.end(),
                     [](const auto& stream) { return stream != nullptr; });
}

const ScheduleLine& PipelineRunner::line_of(const Schedule& schedule,
                                            const StageWorker& worker) const {
  return schedule.lines.at(static_cast<std::size_t>(setup_.layout.position_of(worker.rank())));
}

void PipelineRunner::prepare(const std::vector<std::vector<std::vector<std::int64_t>>>& windows) {
  std::vector<MicroBatchPlan> plans;
  for (const auto& shares : windows) {
    tables_.training(plans.emplace_back(shares, options_.division).count());
  }
  measure_memory(plans);
}

StepResult PipelineRunner::step(const Window& window, BatchFeed& feed) {
  const MicroBatchPlan plan(window.shares, options_.division);
  const Schedule& schedule = tables_.training(plan.count());
  ++windows_[window.shares];
  if (keeps_spans_) kept_[window.step] = window.shares;
  std::vector<StepResult> results(workers_.size());
  run_each([&](int i) {
    StageWorker& worker = *workers_[static_cast<std::size_t>(i)];
    results[static_cast<std::size_t>(i)] =
        worker.step({window, plan, line_of(schedule, worker), feed});
  });
  return results.front();
}

// As in training, but batch norm joins nobody: its values are there.
MicroBatchPlan PipelineRunner::forward_plan(const HostBatch& batch) const {
  return {{batch.shares}, {options_.division.replicas, options_.division.rule, false}};
}

EvalSums PipelineRunner::evaluate(const HostBatch& batch) {
  const MicroBatchPlan plan = forward_plan(batch);
  const Schedule& schedule = tables_.forwards(plan.count());
  std::vector<EvalSums> sums(workers_.size());
  run_each([&](int i) {
    StageWorker& worker = *workers_[static_cast<std::size_t>(i)];
    sums[static_cast<std::size_t>(i)] = worker.evaluate({batch, plan, line_of(schedule, worker)});
  });
  return sums.front();
}

Outputs PipelineRunner::predict(const HostBatch& batch) {
  const MicroBatchPlan plan = forward_plan(batch);
  const Schedule& schedule = tables_.forwards(plan.count());
  Outputs outputs{width_, {}};
  run([&](StageWorker& worker) {
    const std::vector<double> mine = worker.predict({batch, plan, line_of(schedule, worker)});
    if (!mine.empty() && worker.rank() != 0) {
      worker.control().send_now(mine.data(), mine.size() * sizeof(double), 0, kOutputsTag);
    }
    if (worker.rank() != 0) return;
    for (int replica = 0; replica < setup_.layout.replicas; ++replica) {
      const int from = setup_.layout.rank_of(replica, setup_.layout.workers_per_replica - 1);
      std::vector<double> rows = mine;
      if (from != 0) {
        rows.resize(
            static_cast<std::size_t>(batch.shares[static_cast<std::size_t>(replica)] * width_));
        if (!rows.empty()) {
          worker.control().receive_now(rows.data(), rows.size() * sizeof(double), from,
                                       kOutputsTag);
        }
      }
      outputs.values.insert(outputs.values.end(), rows.begin(), rows.end());
    }
  });
  return outputs;
}

// In `sync` modes all have the same already.
void PipelineRunner::settle_statistics() {
  if (options_.division.together) return;
  run([](StageWorker& worker) { worker.send_statistics(); });
}

std::vector<NamedArray> PipelineRunner::joined(StageWorker& worker, int replica,
                                               std::vector<NamedArray> mine) {
  if (worker.replica() != replica) return {};
  const int first = setup_.layout.rank_of(replica, 0);
  if (worker.rank() != first) {
    send_arrays(worker.control(), mine, first);
    return {};
  }
  for (int position = 1; position < setup_.layout.workers_per_replica; ++position) {
    for (NamedArray& array : receive_arrays(worker.control(), first + position)) {
      mine.push_back(std::move(array));
    }
  }
  return mine;
}

// As a network and an optimizer of one device list them: entries of the network's names by place,
// those of the optimizer kind by kind.
void PipelineRunner::sort_as_one_device(std::vector<NamedArray>& arrays) const {
  std::unordered_map<std::string, std::size_t> places, kinds;
  for (const std::string& name : setup_.map.state) places.emplace(name, places.size());
  auto key = [&](const NamedArray& array) {
    if (const auto found = places.find(array.name); found != places.end()) {
      return std::pair<std::size_t, std::size_t>(0, found->second);
    }
    const std::size_t slash = array.name.find('/');
    const std::size_t kind = kinds.emplace(array.name.substr(0, slash), kinds.size()).first->second;
    return std::pair(kind, places.at(array.name.substr(slash + 1)));
  };
  std::vector<std::pair<std::pair<std::size_t, std::size_t>, std::size_t>> order;
  for (std::size_t i = 0; i < arrays.size(); ++i) order.emplace_back(key(arrays[i]), i);
  std::sort(order.begin(), order.end());
  std::vector<NamedArray> sorted;
  for (const auto& [place, i] : order) sorted.push_back(std::move(arrays[i]));
  arrays = std::move(sorted);
}

// Each replica's first worker hashes the whole of it: the hash takes entries in the order of their
// names, which is none of the stages'.
std::vector<std::string> PipelineRunner::weights_hashes() {
  std::vector<std::string> hashes;
  run([&](StageWorker& worker) {
    const std::vector<NamedArray> all = joined(worker, worker.replica(), worker.state());
    std::string mine(kHashDigits, ' ');
    if (!all.empty()) mine = weights_hash(all);
    CONVOY_DCHECK(mine.size() == kHashDigits, "a hash has {} digits", mine.size());
    std::string texts(kHashDigits * static_cast<std::size_t>(setup_.layout.world()), ' ');
    worker.control().all_gather_now(mine.data(), texts.data(), kHashDigits);
    if (worker.rank() != group_.first_rank()) return;
    for (int replica = 0; replica < setup_.layout.replicas; ++replica) {
      const auto rank = static_cast<std::size_t>(setup_.layout.rank_of(replica, 0));
      hashes.push_back(texts.substr(rank * kHashDigits, kHashDigits));
    }
  });
  return hashes;
}

std::vector<LinkReport> PipelineRunner::links() {
  std::string text;
  for (const auto& worker : workers_) {
    for (const LinkReport& link : worker->links()) {
      text += fmt::format("{} {} {} {} {} ", link.from, link.to, link.latency_s, link.bytes_per_s,
                          link.clock_offset_s);
    }
  }
  std::vector<LinkReport> all;
  for (const std::string& each : gather_texts(group_.processes(), text)) {
    std::istringstream in(each);
    for (LinkReport link;
         in >> link.from >> link.to >> link.latency_s >> link.bytes_per_s >> link.clock_offset_s;) {
      all.push_back(link);
    }
  }
  return all;
}

ReduceSeconds PipelineRunner::reduce_seconds() const {
  const ReduceTimes times = workers_.front()->reduce_times();
  return {times.all_reduce, times.exposed};
}

TrainingTensors PipelineRunner::tensors() {
  TrainingTensors tensors;
  run([&](StageWorker& worker) {
    if (worker.replica() != 0) return;
    std::vector<NamedArray> model = joined(worker, 0, worker.state());
    std::vector<NamedArray> optimizer = joined(worker, 0, worker.optimizer_state());
    if (worker.rank() == 0) {
      tensors = {std::move(model), std::move(optimizer), worker.optimizer_steps()};
    }
  });
  sort_as_one_device(tensors.model);
  sort_as_one_device(tensors.optimizer);
  return tensors;
}

std::vector<NamedArray> PipelineRunner::gradients() {
  std::vector<NamedArray> gradients;
  run([&](StageWorker& worker) {
    if (worker.replica() != 0) return;
    std::vector<NamedArray> all = joined(worker, 0, worker.gradients());
    if (worker.rank() == 0) gradients = std::move(all);
  });
  sort_as_one_device(gradients);
  return gradients;
}

std::uint64_t PipelineRunner::tensor_bytes() const {
  const StageMap& map = setup_.map;
  const std::uint64_t states = 1 + workers_.front()->states_per_parameter();
  const std::uint64_t values = static_cast<std::uint64_t>(map.parameter_values) * states +
                               static_cast<std::uint64_t>(map.buffer_values);
  return values * size_of(dtype_);
}

void PipelineRunner::load(const TrainingTensors& tensors) {
  run([&](StageWorker& worker) { worker.load(tensors); });
}

}  // namespace convoy
