#include "kernels/base/host_stream.h"

#include "kernels/base/error.h"

namespace convoy {
namespace {

struct HostEvent : Event::State {
  bool done() const override { return reached.load(std::memory_order_acquire); }
  void wait() const override { reached.wait(false, std::memory_order_acquire); }
  void reach() {
    reached.store(true, std::memory_order_release);
    reached.notify_all();
  }
  std::atomic<bool> reached{false};
};

}  // namespace

HostStream::HostStream(Device device, MemoryPool& pool, const KernelThreads* threads)
    : Stream(device), pool_(pool), threads_(threads), thread_([this] { loop(); }) {}

HostStream::~HostStream() {
  std::unique_lock lock(mutex_);
  drain(lock);
  lock.unlock();
  scratch_ = MemoryPool::Block();
  // The thread still runs: a trim() that found this stream before it retired waits for its events.
  pool_.retire(this);
  lock.lock();
  stopping_ = true;
  lock.unlock();
  wake_.notify_all();
  thread_.join();
}

void HostStream::drain(std::unique_lock<std::mutex>& lock) {
  idle_.wait(lock, [this] { return queue_.empty() && !running_; });
}

void HostStream::push(std::function<void()> work, const char* kernel, bool always) {
  {
    std::lock_guard lock(mutex_);
    queue_.push_back({std::move(work), threads_ ? threads_->count.load() : 0, kernel, always});
  }
  wake_.notify_one();
}

void HostStream::submit(std::function<void()> work, const CallSite& caller) {
  push(std::move(work), caller.function_name(), false);
}

void HostStream::submit(std::function<void()> work, const char* kernel) {
  push(std::move(work), kernel, false);
}

void HostStream::record_to(std::shared_ptr<StreamRecorder> recorder) {
  host_call([this, recorder = std::move(recorder)]() mutable { recorder_ = std::move(recorder); });
}

void HostStream::host_call(std::function<void()> work) {
  push(std::move(work), nullptr, true);
}

Event HostStream::record() {
  auto state = std::make_shared<HostEvent>();
  push([state] { state->reach(); }, nullptr, true);
  return Event(state);
}

void HostStream::wait(const Event& event) {
  if (!event.done()) push([event] { event.wait(); }, nullptr, true);
}

void HostStream::synchronize() {
  std::unique_lock lock(mutex_);
  drain(lock);
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void* HostStream::scratch(std::size_t bytes) {
  // Queued work may still use the old block: the pool hands it out again in stream order only.
  if (bytes > scratch_.bytes()) {
    scratch_ = MemoryPool::Block();
    scratch_ = pool_.allocate(bytes, this);
  }
  return scratch_.data();
}

void HostStream::run(Item& item) {
  if (!recorder_ || !item.kernel) return item.work();
  const auto begin = std::chrono::steady_clock::now();
  item.work();
  recorder_->ran({device(), item.kernel, begin, std::chrono::steady_clock::now()});
}

void HostStream::loop() {
  int applied = 0;
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
    if (queue_.empty()) return;
    Item item = std::move(queue_.front());
    queue_.pop_front();
    running_ = true;
    const bool skip = failure_ && !item.always;
    lock.unlock();
    if (item.threads != applied) threads_->apply(applied = item.threads);
    std::exception_ptr failure;
    try {
      if (!skip) run(item);
    } catch (...) {
      failure = std::current_exception();
    }
    item.work = nullptr;  // what the closure owns goes before the stream counts as idle
    lock.lock();
    if (failure && !failure_) failure_ = failure;
    running_ = false;
    if (queue_.empty()) idle_.notify_all();
  }
}

HostStream& host(Stream& stream) {
  auto* result = dynamic_cast<HostStream*>(&stream);
  CONVOY_DCHECK(result, "stream of {} is not a host stream", to_string(stream.device()));
  return *result;
}

}  // namespace convoy
