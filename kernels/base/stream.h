// Queues of work on a device. Calls on a stream return at once; its work runs in order. A failure
// in that work surfaces at the next synchronize() of the stream, as on a GPU.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "kernels/base/device.h"

namespace convoy {

class StreamRecorder;

/// A point in a stream's work, to be waited for by the host or by other streams. Copies name the
/// same point. A default-made event is complete.
class Event {
 public:
  /// What a backend keeps behind an event.
  struct State {
    virtual ~State() = default;
    virtual bool done() const = 0;
    virtual void wait() const = 0;
  };

  Event() = default;
  explicit Event(std::shared_ptr<State> state) : state_(std::move(state)) {}

  /// Whether all work before the point has run.
  bool done() const { return !state_ || state_->done(); }
  /// Blocks the calling thread until the point is reached.
  void wait() const {
    if (state_) state_->wait();
  }
  /// For backends, which know events of their own; null for a default-made one.
  const std::shared_ptr<State>& state() const { return state_; }

 private:
  std::shared_ptr<State> state_;
};

/// An in-order queue of kernels and copies of one device.
class Stream {
 public:
  explicit Stream(Device device) : device_(device) {}
  virtual ~Stream() = default;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  const Device& device() const { return device_; }
  /// The point after all work queued so far.
  virtual Event record() = 0;
  /// Later work of this stream starts after `event`, whatever stream that belongs to.
  virtual void wait(const Event& event) = 0;
  /// Blocks until all queued work has run; throws the first error of that work.
  virtual void synchronize() = 0;
  /// Runs `work` on the host in stream order: used for what must outlive queued work.
  virtual void host_call(std::function<void()> work) = 0;
  /// Device memory that the kernels of this stream may use one after the other. The pointer stays
  /// valid for work queued before the next call that asks for more.
  virtual void* scratch(std::size_t bytes) = 0;
  /// Tells `recorder` of each kernel and copy that is queued from now on; null ends that.
  virtual void record_to(std::shared_ptr<StreamRecorder> recorder) = 0;

 private:
  Device device_;
};

}  // namespace convoy
