#include "tests/engine/parallel/pipeline/table_run.h"

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <vector>

namespace convoy::testing {
namespace {

constexpr std::chrono::seconds kLimit(60);

// The stage before the edge, and the direction.
using Channel = std::pair<int, bool>;

Channel channel_of(const Instruction& transfer) {
  switch (transfer.op) {
    case ScheduleOp::send_activation:
      return {transfer.stage, true};
    case ScheduleOp::receive_activation:
      return {transfer.stage - 1, true};
    case ScheduleOp::send_gradient:
      return {transfer.stage - 1, false};
    default:
      return {transfer.stage, false};
  }
}

class Run {
 public:
  Run(const Schedule& schedule, int capacity)
      : schedule_(schedule), capacity_(capacity), waits_(schedule.lines.size()) {
    for (const ScheduleLine& line : schedule.lines) {
      running_ += line.empty() ? 0 : 1;
      std::set<int> stages;
      for (const Instruction& at : line) stages.insert(at.stage);
      stages_.push_back(std::ssize(stages));
    }
    steps_.resize(schedule.lines.size());
  }

  TableRun run() {
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < schedule_.lines.size(); ++i) {
      if (!schedule_.lines[i].empty()) threads.emplace_back([this, i] { work(i); });
    }
    for (std::thread& thread : threads) thread.join();
    return result_;
  }

 private:
  void work(std::size_t worker) {
    std::unique_lock lock(mutex_);
    for (const Instruction& instruction : schedule_.lines[worker]) {
      if (!pass(worker, instruction, lock)) return;
      lock.unlock();  // workers take turns in any order
      lock.lock();
    }
    --running_;
    look_for_hang();
  }

  bool pass(std::size_t worker, const Instruction& instruction,
            std::unique_lock<std::mutex>& lock) {
    if (sends(instruction.op)) {
      std::deque<Instruction>& channel = channels_[channel_of(instruction)];
      const auto room = [&] { return std::ssize(channel) < capacity_; };
      if (!wait(worker, instruction, room, lock)) return false;
      channel.push_back(instruction);
    } else if (receives(instruction.op)) {
      std::deque<Instruction>& channel = channels_[channel_of(instruction)];
      if (!wait(
              worker, instruction, [&] { return !channel.empty(); }, lock))
        return false;
      const Instruction message = channel.front();
      channel.pop_front();
      if (message != counterpart(instruction)) {
        finish(RunEnd::mixed, describe(message) + " came for " + describe(instruction));
        return false;
      }
    }
    if (instruction.op == ScheduleOp::step) {
      const std::ptrdiff_t windows = ++steps_[worker] / stages_[worker];
      const bool is_last = steps_[worker] % stages_[worker] == 0;
      const auto all_here = [&] { return !is_last || all_have_ended(windows); };
      if (!wait(worker, instruction, all_here, lock)) return false;
    }
    changed_.notify_all();
    return !over_;
  }

  bool all_have_ended(std::ptrdiff_t windows) const {
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      if (stages_[i] > 0 && steps_[i] / stages_[i] < windows) return false;
    }
    return true;
  }

  bool wait(std::size_t worker, const Instruction& at, const std::function<bool()>& ready,
            std::unique_lock<std::mutex>& lock) {
    if (ready()) return !over_;
    waits_[worker] = {ready, at};
    look_for_hang();
    const bool in_time = changed_.wait_for(lock, kLimit, [&] { return over_ || ready(); });
    waits_[worker].ready = nullptr;
    if (!in_time) finish(RunEnd::late, describe(at));
    return !over_;
  }

  // Only workers change what others wait for: if all wait and nobody is ready, that is the end.
  void look_for_hang() {
    std::size_t waiting = 0;
    std::string text;
    for (std::size_t i = 0; i < waits_.size(); ++i) {
      if (!waits_[i].ready) continue;
      if (waits_[i].ready()) return;
      ++waiting;
      text += " worker " + std::to_string(i) + " at " + describe(waits_[i].at) + ";";
    }
    if (waiting == running_ && waiting > 0) finish(RunEnd::hung, text);
  }

  void finish(RunEnd end, const std::string& text) {
    if (!over_) result_ = {end, text};
    over_ = true;
    changed_.notify_all();
  }

  struct Wait {
    std::function<bool()> ready;  // null: it does not wait
    Instruction at = {};
  };
  const Schedule& schedule_;
  const int capacity_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<Channel, std::deque<Instruction>> channels_;
  std::vector<Wait> waits_;
  std::vector<std::ptrdiff_t> stages_;  // of each worker
  std::vector<std::ptrdiff_t> steps_;   // ST that it has reached
  std::size_t running_ = 0;
  bool over_ = false;
  TableRun result_;
};

}  // namespace

TableRun run_table(const Schedule& schedule, int capacity) {
  return Run(schedule, capacity).run();
}

}  // namespace convoy::testing
