#include "engine/train/data_parallel_runner.h"

#include <chrono>
#include <cstring>

#include "engine/nn/layers.h"
#include "engine/nn/state.h"
#include "kernels/base/context.h"
#include "kernels/base/error.h"

namespace convoy {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kHashDigits = 32;

std::exception_ptr with_rank(const std::exception_ptr& failure, int rank, HostCommunicator& group) {
  Error error = to_error(failure);
  if (!error.rank()) error = error.with_rank(rank);
  group.abort(error);
  return std::make_exception_ptr(error);
}

/// One value of every worker, in rank order.
template <class T>
std::vector<T> gather(HostCommunicator& group, const T& mine) {
  static_assert(std::is_trivially_copyable_v<T>);
  std::vector<T> all(static_cast<std::size_t>(group.size()));
  group.all_gather_now(&mine, all.data(), sizeof(T));
  return all;
}

}  // namespace

struct DataParallelRunner::Worker {
  Worker(int worker, Group& the_group, TrainingReplica given, bool together,
         const BucketLimits& buckets)
      : number(worker),
        group(the_group.worker(worker)),
        board(the_group.progress(worker)),
        network(std::move(given.network)),
        device(given.options.device),
        runner(network, std::move(given.optimizer), given.options),
        statistics_group(together ? group.split(0, group.rank()) : nullptr),
        reducer(network->named_parameters(), group, {.buckets = buckets}) {
    if (together) set_batch_norm_group(*network, statistics_group.get());
  }

  int number;  ///< among those of this process
  HostCommunicator& group;
  ProgressBoard& board;
  std::shared_ptr<Network> network;
  Device device;
  LocalRunner runner;
  std::unique_ptr<Communicator> statistics_group;
  Reducer reducer;
  Clock::time_point busy_since;
  double busy_seconds = 0;
  bool has_layouts = false;  ///< the weights, since a first forward
  StepResult result;
  EvalSums sums;
  std::vector<std::string> hashes;

  double since() const { return std::chrono::duration<double>(Clock::now() - busy_since).count(); }
};

DataParallelRunner::DataParallelRunner(Group& group, std::vector<TrainingReplica> replicas,
                                       const Division& division, const BucketLimits& buckets)
    : group_(group),
      division_(division),
      threads_(group.local_workers(), [&group](int worker, const std::exception_ptr& failure) {
        return with_rank(failure, group.first_rank() + worker, group.worker(worker));
      }) {
  CONVOY_CHECK(std::ssize(replicas) == group.local_workers(),
               "data parallel: {} replicas for {} workers", replicas.size(), group.local_workers());
  workers_.resize(replicas.size());
  threads_.run([&](int i) {
    const auto place = static_cast<std::size_t>(i);
    workers_[place] =
        std::make_unique<Worker>(i, group, std::move(replicas[place]), division.together, buckets);
  });
}

DataParallelRunner::~DataParallelRunner() = default;

void DataParallelRunner::run(const std::function<void(Worker&)>& work) {
  threads_.run([&](int i) { work(*workers_[static_cast<std::size_t>(i)]); });
}

BatchPart DataParallelRunner::part_of(const Worker& worker, const HostBatch& batch) const {
  const int replica = group_.first_rank() + worker.number;
  const auto place = static_cast<std::size_t>(replica);
  return {batch.image_start(replica), batch.shares[place],
          passes_of(batch.shares, division_)[place]};
}

StepResult DataParallelRunner::step(const Window& window, BatchFeed& feed) {
  run([&](Worker& worker) {
    worker.busy_since = Clock::now();
    worker.runner.begin(window);
    const std::int64_t batches = std::ssize(window.shares);
    for (std::int64_t i = 0; i < batches; ++i) {
      add_batch(worker, feed.at(i), i + 1 == batches);
      feed.done(i);
    }
    finish(worker);
  });
  return workers_.front()->result;
}

void DataParallelRunner::add_batch(Worker& worker, const HostBatch& batch, bool last) {
  const BatchPart part = part_of(worker, batch);
  if (part.passes == 0 && !worker.has_layouts) worker.runner.settle_layouts(batch);
  worker.has_layouts = true;
  if (last && part.passes == 0) {  // zeros stand for gradients that it does not have
    worker.reducer.arm();
    worker.reducer.absent();
  }
  worker.runner.add_part(batch, part, [&] {
    if (last) worker.reducer.arm();
  });
}

void DataParallelRunner::finish(Worker& worker) {
  // Losses first: a rank whose loss is not finite says so before its gradients reach others.
  const double mine = worker.runner.finish_losses();
  worker.busy_seconds = worker.since();
  const std::vector<double> losses = gather(worker.group, mine);
  worker.result.loss = 0;
  for (double loss : losses) worker.result.loss += loss;
  worker.reducer.finish();
  worker.busy_since = Clock::now();
  // In the first step gradients come row-major: a norm added up so would differ in its last bits
  // from that of a run which has come here without stopping.
  worker.result.grad_norm = worker.runner.update(worker.reducer.layouts());
  current_stream(worker.device).synchronize();
  worker.busy_seconds += worker.since();
  worker.board.end_step(worker.busy_seconds);
}

EvalSums DataParallelRunner::evaluate(const HostBatch& batch) {
  run([&](Worker& worker) {
    const EvalSums mine = worker.runner.evaluate_part(batch, part_of(worker, batch));
    worker.sums = {};
    for (const EvalSums& sums : gather(worker.group, mine)) worker.sums += sums;
  });
  return workers_.front()->sums;
}

// In `sync` modes all have the same already.
void DataParallelRunner::settle_statistics() {
  if (!division_.together) {
    run([this](Worker& worker) { send_statistics(worker); });
  }
}

void DataParallelRunner::send_statistics(Worker& worker) {
  const NamedTensors buffers = worker.network->named_buffers();
  if (buffers.empty()) return;
  std::vector<NamedArray> arrays = to_arrays(buffers);
  std::vector<std::byte> values;
  for (const NamedArray& array : arrays) {
    values.insert(values.end(), array.bytes.begin(), array.bytes.end());
  }
  worker.group.broadcast_now(values.data(), values.size(), 0);
  if (worker.group.rank() == 0) return;
  const std::byte* next = values.data();
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    std::memcpy(arrays[i].bytes.data(), next, arrays[i].bytes.size());
    next += arrays[i].bytes.size();
  }
  const NamedTensors received = to_tensors(arrays);
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    Tensor buffer = buffers[i].second;
    buffer.copy_(received[i].second);
  }
}

std::vector<std::string> DataParallelRunner::weights_hashes() {
  run([](Worker& worker) {
    const std::string mine = worker.runner.weights_hashes().front();
    std::string all(kHashDigits * static_cast<std::size_t>(worker.group.size()), ' ');
    CONVOY_DCHECK(mine.size() == kHashDigits, "a hash has {} digits", mine.size());
    worker.group.all_gather_now(mine.data(), all.data(), kHashDigits);
    worker.hashes.clear();
    for (std::size_t i = 0; i < all.size(); i += kHashDigits) {
      worker.hashes.push_back(all.substr(i, kHashDigits));
    }
  });
  return workers_.front()->hashes;
}

ReduceSeconds DataParallelRunner::reduce_seconds() const {
  const ReduceTimes times = workers_.front()->reducer.times();
  return {times.all_reduce, times.exposed};
}

TrainingTensors DataParallelRunner::tensors() {
  return workers_.front()->runner.tensors();
}

std::uint64_t DataParallelRunner::tensor_bytes() const {
  return workers_.front()->runner.tensor_bytes();
}

void DataParallelRunner::load(const TrainingTensors& tensors) {
  run([&](Worker& worker) { worker.runner.load(tensors); });
}

}  // namespace convoy
