#include "bench/allreduce.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "bench/device_all_reduce.h"
#include "bench/median.h"
#include "comm/mpi_library.h"
#include "kernels/base/error.h"

namespace convoy {
namespace {

constexpr std::int64_t kWarmUp = 3;

/// Integers, so that any order of adding gives the same sum; other ones in each round, so that what
/// a round left behind is no right result of the next.
float value_of(std::int64_t index, std::int64_t round, int rank) {
  return static_cast<float>(((index + round) & 1023) + 7 * rank);
}

float sum_of(std::int64_t index, std::int64_t round, int ranks) {
  const std::int64_t of_ranks = std::int64_t{7} * ranks * (ranks - 1) / 2;
  return static_cast<float>(ranks * ((index + round) & 1023) + of_ranks);
}

struct Implementation {
  const char* name;
  HostAllReduce run;
  /// Of values that do not lie where `run` works.
  std::function<void(const float* values, std::int64_t count)> fill;
  std::function<void(float* values, std::int64_t count)> fetch;
  /// Values lie where those of gradients do: in the communicator's memory, if it has any.
  bool in_its_memory = false;
};

/// What one worker does.
class Worker {
 public:
  Worker(HostCommunicator& communicator, const std::vector<Implementation>& implementations)
      : communicator_(communicator), implementations_(implementations) {}

  /// All implementations at one size, turn about.
  std::vector<AllReduceBenchRow> measure(std::int64_t bytes, std::int64_t repeats) {
    count_ = bytes / static_cast<std::int64_t>(sizeof(float));
    own_.resize(static_cast<std::size_t>(count_));
    shared_ = communicator_.make_memory(static_cast<std::size_t>(bytes));
    std::vector<std::vector<double>> seconds(implementations_.size());
    for (std::int64_t round = -kWarmUp; round < repeats; ++round) {
      for (std::size_t i = 0; i < implementations_.size(); ++i) {
        const double mine = time_once(implementations_[i], round + kWarmUp);
        if (round >= 0) seconds[i].push_back(mine);
      }
    }
    std::vector<AllReduceBenchRow> rows;
    for (std::size_t i = 0; i < implementations_.size(); ++i) {
      rows.push_back(row_of(implementations_[i].name, bytes, slowest(seconds[i])));
    }
    return rows;
  }

 private:
  double time_once(const Implementation& implementation, std::int64_t round) {
    using Clock = std::chrono::steady_clock;
    float* values = values_of(implementation);
    const int rank = communicator_.rank();
    for (std::int64_t i = 0; i < count_; ++i) values[i] = value_of(i, round, rank);
    if (implementation.fill) implementation.fill(values, count_);
    communicator_.barrier();
    const Clock::time_point start = Clock::now();
    implementation.run(values, values, count_, DType::f32, Reduction::sum);
    const std::chrono::duration<double> seconds = Clock::now() - start;
    if (implementation.fetch) implementation.fetch(values, count_);
    check(implementation, values, round);
    return seconds.count();
  }

  float* values_of(const Implementation& implementation) {
    const bool shared = implementation.in_its_memory && shared_;
    return shared ? reinterpret_cast<float*>(shared_.get()) : own_.data();
  }

  void check(const Implementation& implementation, const float* values, std::int64_t round) const {
    const int ranks = communicator_.size();
    std::int64_t wrong = 0;
    for (std::int64_t i = 0; i < count_; ++i) wrong += values[i] != sum_of(i, round, ranks);
    if (wrong == 0) return;
    std::int64_t first = 0;
    while (values[first] == sum_of(first, round, ranks)) ++first;
    CONVOY_FAIL(communication,
                "bench allreduce: {}: {} of {} values are wrong on rank {}; value {} is {}, "
                "expected {}",
                implementation.name, wrong, count_, communicator_.rank(), first, values[first],
                sum_of(first, round, ranks));
  }

  /// Of each round, over all ranks.
  std::vector<double> slowest(const std::vector<double>& mine) {
    std::vector<double> all(mine.size());
    communicator_.all_reduce_now(mine.data(), all.data(), static_cast<std::int64_t>(mine.size()),
                                 DType::f64, Reduction::max);
    return all;
  }

  AllReduceBenchRow row_of(const char* impl, std::int64_t bytes,
                           const std::vector<double>& seconds) const {
    AllReduceBenchRow row{.impl = impl, .ranks = communicator_.size(), .bytes = bytes};
    row.median_s = median(seconds);
    row.best_s = *std::min_element(seconds.begin(), seconds.end());
    row.bus_gb_s =
        2.0 * (row.ranks - 1) / row.ranks * static_cast<double>(bytes) / row.median_s / 1e9;
    return row;
  }

  HostCommunicator& communicator_;
  const std::vector<Implementation>& implementations_;
  std::int64_t count_ = 0;
  std::vector<float> own_;
  std::shared_ptr<std::byte> shared_;
};

/// The first failure of the workers of this process in time; it ends the others.
class FirstFailure {
 public:
  explicit FirstFailure(Group& group) : group_(group) {}
  void take(const Error& error) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!error_) error_ = group_.fail(error);
  }
  void rethrow() const {
    if (error_) throw Error(*error_);
  }

 private:
  Group& group_;
  std::mutex mutex_;
  std::optional<Error> error_;
};

std::vector<Implementation> implementations_of(HostCommunicator& communicator,
                                               const std::optional<HostAllReduce>& library) {
  std::vector<Implementation> found = {
      {"ring",
       [&communicator](const void* in, void* out, std::int64_t count, DType dtype,
                       Reduction reduction) {
         communicator.all_reduce_now(in, out, count, dtype, reduction);
       },
       {},
       {},
       true}};
  if (library) found.push_back({"mpi", *library, {}, {}});
  return found;
}

std::vector<Implementation> implementation_on(DeviceAllReduce& device) {
  return {
      {"nccl",
       [&device](const void*, void*, std::int64_t count, DType, Reduction) { device.run(count); },
       [&device](const float* values, std::int64_t count) { device.fill(values, count); },
       [&device](float* values, std::int64_t count) { device.fetch(values, count); }}};
}

/// MPI's own all-reduce joins processes: it does the same work where each has one worker.
std::optional<HostAllReduce> library_of(const Group& group) {
  if (std::string(group.backend()) != "mpi" || group.size() != group.world().size) return {};
  return mpi_library_all_reduce();
}

}  // namespace

void AllReduceBenchOptions::check() const {
  CONVOY_CHECK(repeats >= 1, "bench allreduce: {} repeats, expected at least 1", repeats);
  for (std::int64_t size : bytes) {
    CONVOY_CHECK(size > 0 && size % sizeof(float) == 0,
                 "bench allreduce: {} bytes, expected whole fp32 values: a multiple of 4", size);
  }
}

std::vector<AllReduceBenchRow> bench_all_reduce(Group& group,
                                                const AllReduceBenchOptions& options) {
  options.check();
  CONVOY_CHECK(group.size() >= 2,
               "bench allreduce: one worker has nothing to add up; expected --devices cpu:0,cpu:1 "
               "or a start with mpirun -n 2");
  const std::optional<HostAllReduce> library = library_of(group);
  FirstFailure failure(group);
  std::vector<std::vector<AllReduceBenchRow>> rows(group.local_workers());
  const auto work = [&](int local) {
    try {
      const CoresScope scope(group.cores(local));
      HostCommunicator& communicator = group.worker(local);
      std::optional<DeviceAllReduce> device;
      if (!options.gpus.empty()) device.emplace(communicator, options.gpus.at(local));
      const auto implementations =
          device ? implementation_on(*device) : implementations_of(communicator, library);
      Worker worker(communicator, implementations);
      for (std::int64_t bytes : options.bytes) {
        for (AllReduceBenchRow& row : worker.measure(bytes, options.repeats)) {
          rows[local].push_back(std::move(row));
        }
      }
    } catch (...) {
      failure.take(to_error(std::current_exception()));
    }
  };
  {
    std::vector<std::jthread> threads;
    for (int local = 0; local < group.local_workers(); ++local) threads.emplace_back(work, local);
  }
  failure.rethrow();
  return rows.front();
}

}  // namespace convoy
