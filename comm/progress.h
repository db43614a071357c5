// What a worker is doing, for those who watch over it: written by the worker and by its
// communicators with a few atomic stores, read by the watchdog from another thread.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>

namespace convoy {

/// `waiting`: in a collective or a message, for other ranks. The others are the rank's own work.
enum class Activity : int { starting, loading, computing, waiting, evaluating, saving, finished };

/// "loading", "computing", ...
const char* name(Activity activity);

/// What a waiting worker is in: a kind of collective, or a message.
enum class WaitIn : int { collective, reduce, gather, broadcast, barrier, message };

/// "collective", "reduce", ...
const char* name(WaitIn what);

/// Where in a schedule a worker is: an instruction of two letters, its stage, its micro-batch (-1
/// for instructions that have none).
struct InstructionMark {
  std::array<char, 2> op{};  ///< padded with zeros; empty outside of a schedule
  std::uint16_t stage = 0;
  std::int32_t micro_batch = -1;

  bool operator==(const InstructionMark&) const = default;
  explicit operator bool() const { return op[0] != 0; }
};

/// "RA 1.3", "ST 1".
std::string to_text(const InstructionMark& mark);

/// One reading. Times are seconds of the system clock since 1970.
struct Progress {
  Activity activity = Activity::starting;
  std::int64_t step = 0;        ///< optimizer step in work, from 1
  std::int64_t collective = 0;  ///< collectives begun so far: the one in work while waiting
  std::uint64_t beats = 0;      ///< rises with whatever gets done: bytes moved, images loaded
  double since = 0;             ///< when this activity began
  double step_seconds = 0;      ///< of whole steps of late, without waiting: a running mean
  WaitIn wait_in = WaitIn::collective;  ///< what the collective of that number is
  InstructionMark at;                   ///< of the activity in work, where it follows a schedule
  int kind = 0;                         ///< workers of one kind do equal work in a step
};

/// Shared by one worker, its communicators and its watchdog. Thread-safe.
class ProgressBoard {
 public:
  ProgressBoard();
  /// Begins `activity`, outside of a schedule; what was done before is over.
  void enter(Activity activity);
  void begin_step(std::int64_t step);
  /// The step is over; `busy_seconds` of it were the worker's own.
  void end_step(double busy_seconds);
  /// Said once, before the first step, where not all workers do equal work.
  void set_kind(int kind) { kind_.store(kind); }
  /// The worker begins the next instruction of its schedule.
  void begin_instruction(const InstructionMark& mark);
  /// Something got done.
  void beat() { beats_.fetch_add(1, std::memory_order_relaxed); }
  /// A collective or message begins or ends: the activity is `waiting` in between.
  void begin_wait(WaitIn what = WaitIn::collective);
  void end_wait();
  Progress read() const;

 private:
  std::atomic<int> activity_{0};
  std::atomic<int> outer_{0};  // activity to go back to
  std::atomic<std::int64_t> step_{0};
  std::atomic<std::int64_t> collective_{0};
  std::atomic<std::uint64_t> beats_{0};
  std::atomic<double> since_;
  std::atomic<double> step_seconds_{0};
  std::atomic<int> wait_in_{0};
  std::atomic<InstructionMark> at_{InstructionMark{}};
  static_assert(std::atomic<InstructionMark>::is_always_lock_free);
  std::atomic<int> kind_{0};
  std::atomic<int> waits_{0};  // open ones: a worker's streams may wait side by side
};

/// While it lives, the worker waits for others.
class WaitScope {
 public:
  /// `board` may be null.
  explicit WaitScope(ProgressBoard* board, WaitIn what = WaitIn::collective) : board_(board) {
    if (board_) board_->begin_wait(what);
  }
  ~WaitScope() {
    if (board_) board_->end_wait();
  }
  WaitScope(const WaitScope&) = delete;
  WaitScope& operator=(const WaitScope&) = delete;

 private:
  ProgressBoard* board_;
};

}  // namespace convoy
