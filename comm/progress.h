// What a worker is doing, for those who watch over it: written by the worker and by its
// communicators with a few atomic stores, read by the watchdog from another thread.
#pragma once

#include <atomic>
#include <cstdint>

namespace convoy {

/// `waiting`: in a collective or a message, for other ranks. The others are the rank's own work.
enum class Activity : int { starting, loading, computing, waiting, evaluating, saving, finished };

/// "loading", "computing", ...
const char* name(Activity activity);

/// What a waiting worker is in: a kind of collective, or a message.
enum class WaitIn : int { collective, reduce, gather, broadcast, barrier, message };

/// "collective", "reduce", ...
const char* name(WaitIn what);

/// One reading. Times are seconds of the system clock since 1970.
struct Progress {
  Activity activity = Activity::starting;
  std::int64_t step = 0;        ///< optimizer step in work, from 1
  std::int64_t collective = 0;  ///< collectives begun so far: the one in work while waiting
  std::uint64_t beats = 0;      ///< rises with whatever gets done: bytes moved, images loaded
  double since = 0;             ///< when this activity began
  double step_seconds = 0;      ///< of whole steps of late, without waiting: a running mean
  WaitIn wait_in = WaitIn::collective;  ///< what the collective of that number is
};

/// Shared by one worker, its communicators and its watchdog. Thread-safe.
class ProgressBoard {
 public:
  ProgressBoard();
  /// Begins `activity`; what was done before is over.
  void enter(Activity activity);
  void begin_step(std::int64_t step);
  /// The step is over; `busy_seconds` of it were the worker's own.
  void end_step(double busy_seconds);
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
