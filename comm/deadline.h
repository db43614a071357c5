// When something that may take so many seconds ends, and who sees to it that it does.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace convoy {

class Deadline {
 public:
  /// From now. Any number of seconds: what no clock can count is a long time.
  explicit Deadline(double seconds);
  double seconds() const { return seconds_; }
  std::chrono::steady_clock::time_point time() const { return time_; }
  /// Seconds until then, at least 0.
  double left() const;
  bool passed() const { return left() == 0; }

 private:
  double seconds_;
  std::chrono::steady_clock::time_point time_;
};

/// Runs `expired` on a thread of its own if it still lives at `time`.
class DeadlineGuard {
 public:
  DeadlineGuard(std::chrono::steady_clock::time_point time, std::function<void()> expired);
  ~DeadlineGuard();
  DeadlineGuard(const DeadlineGuard&) = delete;
  DeadlineGuard& operator=(const DeadlineGuard&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable over_;
  bool done_ = false;
  std::thread thread_;
};

}  // namespace convoy
