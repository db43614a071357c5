#include "kernels/emulator/streams.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "kernels/emulator/grid.h"
#include "kernels/emulator/handle_table.h"
#include "kernels/emulator/test_control.h"

namespace convoy::emulator {
namespace {

struct AllStreams {
  std::mutex mutex;
  std::vector<std::weak_ptr<EmulatedStream>> streams;
  unsigned made = 0;
};

AllStreams& all_streams() {
  static auto* const all = new AllStreams;
  return *all;
}

}  // namespace

void EventPoint::reach() {
  time_ = std::chrono::steady_clock::now();
  reached_.store(true, std::memory_order_release);
  reached_.notify_all();
}

EmulatedStream::EmulatedStream(EmulatedDevice& device, unsigned flags, unsigned number)
    : device_(device), flags_(flags), random_(stream_seed() + number) {}

std::shared_ptr<EmulatedStream> EmulatedStream::start(EmulatedDevice& device, unsigned flags) {
  AllStreams& all = all_streams();
  std::lock_guard lock(all.mutex);
  std::shared_ptr<EmulatedStream> stream(new EmulatedStream(device, flags, all.made++));
  std::thread([stream] { stream->loop(); }).detach();
  std::erase_if(all.streams, [](const auto& each) { return each.expired(); });
  all.streams.push_back(stream);
  return stream;
}

std::vector<std::shared_ptr<EmulatedStream>> streams_of(const EmulatedDevice& device) {
  AllStreams& all = all_streams();
  std::lock_guard lock(all.mutex);
  std::vector<std::shared_ptr<EmulatedStream>> found;
  for (const auto& each : all.streams) {
    if (auto stream = each.lock(); stream && &stream->device() == &device) found.push_back(stream);
  }
  return found;
}

void EmulatedStream::push(Task task) {
  std::unique_lock lock(mutex_);
  may_wait_ += task.may_wait ? 1 : 0;
  queue_.push_back(std::move(task));
  wake_.notify_one();
  const bool at_once = stream_mode() == StreamMode::eager && may_wait_ == 0;
  if (at_once) idle_.wait(lock, [this] { return queue_.empty() && !running_; });
}

void EmulatedStream::drain() {
  std::unique_lock lock(mutex_);
  idle_.wait(lock, [this] { return queue_.empty() && !running_; });
}

bool EmulatedStream::idle() const {
  std::lock_guard lock(mutex_);
  return queue_.empty() && !running_;
}

void EmulatedStream::retire() {
  std::lock_guard lock(mutex_);
  retired_ = true;
  wake_.notify_one();
}

void EmulatedStream::delay() {
  if (stream_mode() != StreamMode::random) return;
  std::this_thread::sleep_for(std::chrono::microseconds(random_() % 400));
}

void EmulatedStream::run(const Task& task) {
  if (device_.fault() != cudaSuccess && !task.always) return;
  try {
    task.work();
  } catch (const DeviceFault& fault) {
    device_.set_fault(fault.error(), fault.what());
  } catch (const std::exception& error) {
    device_.set_fault(cudaErrorUnknown, error.what());
  }
}

void EmulatedStream::loop() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return retired_ || !queue_.empty(); });
    if (queue_.empty()) return;
    Task task = std::move(queue_.front());
    queue_.pop_front();
    running_ = true;
    lock.unlock();
    delay();
    run(task);
    task.work = nullptr;  // what the closure owns goes before the stream counts as idle
    lock.lock();
    running_ = false;
    may_wait_ -= task.may_wait ? 1 : 0;
    if (queue_.empty()) idle_.notify_all();
  }
}

cudaError_t queue_work(cudaStream_t handle, Task task, bool own_device) {
  if (const cudaError_t refused = refusal(); refused != cudaSuccess) return refused;
  const std::shared_ptr<EmulatedStream> stream = handles<EmulatedStream>().find(handle);
  if (!stream) {
    return fail(cudaErrorInvalidResourceHandle,
                handle ? "the stream was destroyed, or is none"
                       : "the null stream: there is no implicit default stream");
  }
  if (own_device && stream->device().index() != current_device()) {
    return fail(cudaErrorInvalidResourceHandle,
                fmt::format("the stream is of {}, the thread's device is {}",
                            owner_name(stream->device().index()), owner_name(current_device())));
  }
  if (const cudaError_t fault = stream->device().fault(); fault != cudaSuccess) return fault;
  const CaptureResult captured = capture_task(*stream, task);
  if (captured.error != cudaSuccess) return captured.error;
  if (!captured.taken) stream->push(std::move(task));
  return cudaSuccess;
}

}  // namespace convoy::emulator
