// Host threads that take the blocks of grids. A thread that calls run_grid() works on its own grid;
// helpers join it where cores are free.
#include "kernels/emulator/grid.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <list>
#include <memory>
#include <mutex>
#include <numeric>
#include <string_view>
#include <thread>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/base/host_context.h"
#include "kernels/emulator/block_runner.h"
#include "kernels/emulator/machine.h"

namespace convoy::emulator::machine {
namespace {

constexpr int kMostWorkers = 16;

__extension__ typedef unsigned __int128 Wide;

std::uint64_t number_of(std::string_view item, std::string_view value) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  CONVOY_CHECK(error == std::errc() && end == value.data() + value.size(),
               "CONVOY_EMULATOR: {}: expected a number", item);
  return number;
}

void set_option(MachineOptions& options, std::string_view item) {
  const std::size_t equals = std::min(item.find('='), item.size());
  const std::string_view key = item.substr(0, equals);
  const std::string_view value = item.substr(std::min(equals + 1, item.size()));
  if (item == "order=forward") {
    options.order = Order::forward;
  } else if (item == "order=reverse") {
    options.order = Order::reverse;
  } else if (item == "order=random") {
    options.order = Order::random;
  } else if (item == "copies=eager") {
    options.lateness = Lateness::eager;
  } else if (item == "copies=late") {
    options.lateness = Lateness::late;
  } else if (key == "seed") {
    options.seed = number_of(item, value);
  } else if (key == "workers") {
    options.workers = static_cast<int>(std::min<std::uint64_t>(number_of(item, value), 256));
  } else {
    CONVOY_FAIL(usage,
                "CONVOY_EMULATOR: {}: expected order=forward|reverse|random, copies=eager|late, "
                "seed=N or workers=N",
                item);
  }
}

// The i-th of n blocks in the order asked for.
std::uint64_t place_in_order(const MachineOptions& options, std::uint64_t i, std::uint64_t n) {
  if (options.order == Order::reverse) return n - 1 - i;
  if (options.order == Order::forward || n < 2) return i;
  std::uint64_t factor = options.seed % (n / 2 + 1) + n / 2;
  while (std::gcd(factor, n) != 1) ++factor;
  return static_cast<std::uint64_t>((Wide{factor} * i + options.seed) % n);
}

// A grid whose blocks are being taken.
struct Job {
  Job(const GridWork& work, const MachineOptions& options)
      : run{work, options}, blocks(work.config.grid.count()) {
    if (!run.options.observer) run.options.observer = default_observer();
  }

  GridRun run;
  std::uint64_t blocks;
  std::uint64_t taken = 0;
  int helpers = 0;  // that hold a block of it
  std::exception_ptr failure;

  bool open() const { return taken < blocks && failure == nullptr; }
  uint3 take() {
    const std::uint64_t n = place_in_order(run.options, taken++, blocks);
    const dim3 grid = run.work.config.grid;
    return {static_cast<unsigned>(n % grid.x), static_cast<unsigned>(n / grid.x % grid.y),
            static_cast<unsigned>(n / grid.x / grid.y)};
  }
};

/// All of it is guarded by one mutex, which is free while blocks run.
class Machine {
 public:
  /// Never destroyed: helpers wait in it until the process ends.
  static Machine& instance() {
    static auto& machine = *new Machine;
    return machine;
  }

  MachineOptions options() {
    const std::lock_guard lock(mutex_);
    return options_;
  }

  void set_options(const MachineOptions& options) {
    const std::lock_guard lock(mutex_);
    options_ = options;
    changed_.notify_all();
  }

  void run(const GridWork& work) {
    Job job(work, options());
    Observer* const observer = job.run.options.observer;
    if (observer != nullptr) observer->grid_begin(work);
    run(job);
    if (observer != nullptr) observer->grid_end(work);
    if (job.failure != nullptr) std::rethrow_exception(job.failure);
  }

 private:
  Machine() {
    if (const char* text = std::getenv("CONVOY_EMULATOR")) options_ = parse_machine_options(text);
  }

  void run(Job& job) {
    std::unique_lock lock(mutex_);
    const auto place = jobs_.insert(jobs_.end(), &job);
    if (job.blocks > 1) call_helpers();
    while (job.open()) {
      changed_.wait(lock, [&] { return !job.open() || running_ < limit(); });
      if (job.open()) run_blocks(job, lock);
    }
    changed_.wait(lock, [&] { return job.helpers == 0; });
    jobs_.erase(place);
  }

  int limit() const {
    return options_.workers > 0 ? options_.workers : std::min(allowed_cores(), kMostWorkers);
  }

  void call_helpers() {
    while (helpers_ < limit() - 1) {
      ++helpers_;
      std::thread([this] { help(); }).detach();
    }
    changed_.notify_all();
  }

  [[noreturn]] void help() {
    std::unique_lock lock(mutex_);
    for (;;) {
      Job* job = nullptr;
      changed_.wait(lock, [&] {
        if (running_ >= limit()) return false;
        const auto open =
            std::find_if(jobs_.begin(), jobs_.end(), [](const Job* job) { return job->open(); });
        job = open == jobs_.end() ? nullptr : *open;
        return job != nullptr;
      });
      ++job->helpers;
      run_blocks(*job, lock);
      --job->helpers;
      changed_.notify_all();
    }
  }

  // Takes blocks of the job until there are none.
  void run_blocks(Job& job, std::unique_lock<std::mutex>& lock) {
    ++running_;
    std::unique_ptr<BlockRunner> runner = idle_runner();
    while (job.open()) {
      const uint3 index = job.take();
      lock.unlock();
      std::exception_ptr failure;
      try {
        runner->run(job.run, index);
      } catch (...) {
        failure = std::current_exception();
      }
      lock.lock();
      if (failure != nullptr && job.failure == nullptr) job.failure = failure;
    }
    runners_.push_back(std::move(runner));
    --running_;
    changed_.notify_all();
  }

  std::unique_ptr<BlockRunner> idle_runner() {
    if (runners_.empty()) return std::make_unique<BlockRunner>();
    std::unique_ptr<BlockRunner> runner = std::move(runners_.back());
    runners_.pop_back();
    return runner;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  MachineOptions options_;
  std::list<Job*> jobs_;
  std::vector<std::unique_ptr<BlockRunner>> runners_;
  int running_ = 0;  // threads that run blocks
  int helpers_ = 0;  // threads started
};

}  // namespace

MachineOptions parse_machine_options(std::string_view text) {
  MachineOptions options;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    set_option(options, text.substr(0, comma));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return options;
}

// The checks define it anew where they are linked.
[[gnu::weak]] Observer* default_observer() {
  return nullptr;
}

MachineOptions machine_options() {
  return Machine::instance().options();
}

void set_machine_options(const MachineOptions& options) {
  Machine::instance().set_options(options);
}

std::string launch_refusal(const LaunchConfig& config) {
  const auto over = [](const char* what, std::uint64_t value, std::uint64_t most) {
    return fmt::format("{} is {}, expected 1 to {}", what, value, most);
  };
  const auto wrong = [](std::uint64_t value, std::uint64_t most) {
    return value < 1 || value > most;
  };
  const auto [gx, gy, gz] = std::array{config.grid.x, config.grid.y, config.grid.z};
  const auto [bx, by, bz] = std::array{config.block.x, config.block.y, config.block.z};
  if (wrong(gx, 0x7fffffff)) return over("grid.x", gx, 0x7fffffff);
  if (wrong(gy, 65535)) return over("grid.y", gy, 65535);
  if (wrong(gz, 65535)) return over("grid.z", gz, 65535);
  if (wrong(bx, 1024)) return over("block.x", bx, 1024);
  if (wrong(by, 1024)) return over("block.y", by, 1024);
  if (wrong(bz, 64)) return over("block.z", bz, 64);
  const std::uint64_t threads = config.block.count();
  if (threads > kMaxBlockThreads) return over("threads per block", threads, kMaxBlockThreads);
  if (config.shared_bytes > kMaxSharedBytes) {
    return fmt::format("shared memory per block is {} bytes, expected at most {}",
                       config.shared_bytes, kMaxSharedBytes);
  }
  return {};
}

}  // namespace convoy::emulator::machine

namespace convoy::emulator {

void run_grid(const GridWork& work) {
  const std::string refusal = machine::launch_refusal(work.config);
  if (!refusal.empty()) {
    throw DeviceFault(cudaErrorInvalidConfiguration,
                      fmt::format("kernel {}: {}", work.kernel, refusal));
  }
  machine::Machine::instance().run(work);
}

}  // namespace convoy::emulator
