#include "comm/deadline.h"

#include <algorithm>

namespace convoy {
namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

constexpr double kLongest = 1e9;  // 64 bits of nanoseconds end at 9e9

}  // namespace

Deadline::Deadline(double seconds)
    : seconds_(seconds),
      time_(Clock::now() +
            std::chrono::duration_cast<Clock::duration>(Seconds(std::min(seconds, kLongest)))) {}

double Deadline::left() const {
  return std::max(0.0, Seconds(time_ - Clock::now()).count());
}

DeadlineGuard::DeadlineGuard(Clock::time_point time, std::function<void()> expired)
    : thread_([this, time, expired = std::move(expired)] {
        std::unique_lock<std::mutex> lock(mutex_);
        if (!over_.wait_until(lock, time, [this] { return done_; })) expired();
      }) {}

DeadlineGuard::~DeadlineGuard() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    done_ = true;
  }
  over_.notify_all();
  thread_.join();
}

}  // namespace convoy
