// A wish to stop that may come from a signal handler or another thread: the run stops at the next
// step, saves and says so.
#pragma once

#include <atomic>

namespace convoy {

/// Set once, never taken back.
class StopRequest {
 public:
  bool requested() const { return requested_.load(std::memory_order_relaxed); }
  /// Safe in a signal handler.
  void request() { requested_.store(true, std::memory_order_relaxed); }

 private:
  std::atomic<bool> requested_{false};
  static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler must not lock");
};

}  // namespace convoy
