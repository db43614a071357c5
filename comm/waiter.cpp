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
constexpr std::chrono::microseconds kSideStep(10);  // each sleep is so much longer
constexpr std::chrono::microseconds kLongestSide(500);
constexpr std::chrono::microseconds kLongestUrgent(100);
// A worker has many links, and a core that is woken for a look at each of them, a thousand times a
// second, loses a tenth of its time.
constexpr std::chrono::microseconds kLongestIdle(5000);

}  // namespace

void AbortFlag::raise(const Error& why) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!why_) why_ = why;
  raised_.store(true, std::memory_order_release);
  changed_.notify_all();
}

bool AbortFlag::wait_for(double seconds) const {
  std::unique_lock<std::mutex> lock(mutex_);
  return changed_.wait_for(lock, std::chrono::duration<double>(seconds),
                           [this] { return why_.has_value(); });
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
  if (side_) return side_->pause(round);
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

void SideWait::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopped_.store(true);
  }
  changed_.notify_all();
}

void SideWait::set_urgent(bool urgent) {
  {
    const std::lock_guard lock(mutex_);
    urgent_.store(urgent);
  }
  if (urgent) changed_.notify_all();
}

void SideWait::pause(int round) const {
  if (stopped_.load()) CONVOY_FAIL(communication, "a wait beside the worker was ended");
  const bool urgent = urgent_.load();
  const int yields = urgent ? kUrgentYields : kSideYields;
  if (round < yields) {
    std::this_thread::yield();
    return;
  }
  const auto longest = urgent ? kLongestUrgent : idle_.load() ? kLongestIdle : kLongestSide;
  const auto sleep = std::min(kSideStep * std::min(round - yields + 1, 1000), longest);
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, sleep, [&] { return stopped_.load() || urgent_.load() != urgent; });
}

}  // namespace convoy
