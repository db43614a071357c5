#include "comm/waiter.h"

#include <algorithm>
#include <chrono>
#include <thread>

namespace convoy {
namespace {

constexpr int kSpins = 2000;   // about 50 us
constexpr int kYields = 2000;  // before the first sleep
constexpr std::chrono::microseconds kLongestSleep(200);

// Beside a worker. The system adds about 50 us to each sleep.
constexpr int kSideYields = 20;
constexpr int kUrgentYields = 200;
constexpr std::chrono::microseconds kUrgentSleep(10);
constexpr std::chrono::microseconds kSideSleep(100);

}  // namespace

void AbortFlag::raise(const Error& why) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!why_) why_ = why;
  raised_.store(true, std::memory_order_release);
}

Error AbortFlag::error() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return *why_;
}

int spins_for(int workers, int cores) {
  return workers <= cores ? kSpins : 0;
}

void Waiter::pause(int round) {
  if (abort_ && abort_->raised()) abort_->rethrow();
  if (side_) return pause_aside(round);
  if (round < spins_) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
    return;
  }
  if (round < spins_ + kYields) {
    std::this_thread::yield();
    return;
  }
  const int slept = std::min(round - spins_ - kYields, 200);
  std::this_thread::sleep_for(std::min(std::chrono::microseconds(1 + slept), kLongestSleep));
}

void Waiter::pause_aside(int round) {
  if (side_->stopped()) CONVOY_FAIL(communication, "a wait beside the worker was ended");
  const bool urgent = side_->urgent();
  if (round < (urgent ? kUrgentYields : kSideYields)) {
    std::this_thread::yield();
  } else {
    std::this_thread::sleep_for(urgent ? kUrgentSleep : kSideSleep);
  }
}

}  // namespace convoy
