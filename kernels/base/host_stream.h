// A stream of a device whose kernels run on this machine's cores: one worker thread and its queue.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

#include "kernels/base/call_site.h"
#include "kernels/base/memory_pool.h"
#include "kernels/base/stream.h"
#include "kernels/base/stream_recorder.h"

namespace convoy {

/// Threads that the kernels of a device's streams use. Work takes the number that holds when it is
/// queued; `apply` tells it to a stream's thread, whose own it is.
struct KernelThreads {
  std::atomic<int> count;
  void (*apply)(int threads);
};

/// Runs closures in order on a thread of its own, which is the OpenMP master of the kernels.
class HostStream : public Stream {
 public:
  /// `pool` gives scratch memory; it and `threads`, where given, must outlive the stream.
  HostStream(Device device, MemoryPool& pool, const KernelThreads* threads);
  ~HostStream() override;

  /// Queues `work`. After a failure the stream drops work until synchronize() has reported it.
  /// Recorders are told of it under the name of the function that calls this.
  void submit(std::function<void()> work, const CallSite& caller = CallSite::current());
  /// The same under a name of its own, which must live as long as the program.
  void submit(std::function<void()> work, const char* kernel);

  Event record() override;
  void wait(const Event& event) override;
  void synchronize() override;
  void host_call(std::function<void()> work) override;
  void* scratch(std::size_t bytes) override;
  void record_to(std::shared_ptr<StreamRecorder> recorder) override;

 private:
  struct Item {
    std::function<void()> work;
    int threads;
    const char* kernel;  // null: no work for a recorder, such as events and waits
    bool always;         // events and waits run even after a failure, so that nobody hangs
  };
  void push(std::function<void()> work, const char* kernel, bool always);
  void run(Item& item);
  void drain(std::unique_lock<std::mutex>& lock);
  void loop();

  MemoryPool& pool_;
  MemoryPool::Block scratch_;
  const KernelThreads* const threads_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable idle_;
  std::deque<Item> queue_;
  bool running_ = false;
  bool stopping_ = false;
  std::exception_ptr failure_;
  std::shared_ptr<StreamRecorder> recorder_;  // only of the thread: it changes in stream order
  std::thread thread_;
};

/// The host stream behind `stream`; `internal` if it is a GPU's.
HostStream& host(Stream& stream);

}  // namespace convoy
