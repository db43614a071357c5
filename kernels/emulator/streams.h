// Streams of emulated devices: a thread each, so that a missing wait between two of them shows.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <vector>

#include "kernels/emulator/devices.h"
#include "kernels/emulator/graphs.h"

namespace convoy::emulator {

/// A moment in a stream's work: what an event stands for once it was recorded.
class EventPoint {
 public:
  bool reached() const { return reached_.load(std::memory_order_acquire); }
  void wait() const { reached_.wait(false, std::memory_order_acquire); }
  void reach();
  /// When it was reached.
  std::chrono::steady_clock::time_point time() const { return time_; }

 private:
  std::atomic<bool> reached_{false};
  std::chrono::steady_clock::time_point time_;
};

/// One piece of a stream's work.
struct Task {
  std::function<void()> work;
  bool always = false;    ///< also after a fault of the device, so that nobody waits for ever
  bool may_wait = false;  ///< for something outside its stream: callers never wait for it
};

/// An in-order queue with its thread. Never destroyed before its work is done.
struct EmulatedStream : std::enable_shared_from_this<EmulatedStream> {
 public:
  /// Makes the stream and starts its thread.
  static std::shared_ptr<EmulatedStream> start(EmulatedDevice& device, unsigned flags);

  EmulatedDevice& device() const { return device_; }
  bool blocking() const { return (flags_ & cudaStreamNonBlocking) == 0; }
  void push(Task task);
  /// Waits until all work has run.
  void drain();
  bool idle() const;
  /// The thread ends after the last piece of work. Returns at once.
  void retire();

  /// What it records instead of running, see graphs.h.
  CaptureMembership capture;

 private:
  EmulatedStream(EmulatedDevice& device, unsigned flags, unsigned number);
  void loop();
  void run(const Task& task);
  void delay();

  EmulatedDevice& device_;
  const unsigned flags_;
  std::mt19937 random_;  // of the thread alone
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable idle_;
  std::deque<Task> queue_;
  bool running_ = false;
  bool retired_ = false;
  int may_wait_ = 0;  // of the queue
};

/// An event: the last point that was recorded in it.
struct EmulatedEvent {
  explicit EmulatedEvent(int on_device, bool with_time) : device(on_device), timed(with_time) {}
  const int device;
  const bool timed;
  std::mutex mutex;
  std::shared_ptr<EventPoint> point;  // null before the first record
  CapturePoint captured;              // set instead while its stream captures
};

/// Streams of `device` that live or still have work.
std::vector<std::shared_ptr<EmulatedStream>> streams_of(const EmulatedDevice& device);

/// Queues work of any kind in a stream, or adds it to the graph that the stream captures. Kernels
/// must be queued by a thread whose device is the stream's (`own_device`).
cudaError_t queue_work(cudaStream_t stream, Task task, bool own_device = false);

}  // namespace convoy::emulator
