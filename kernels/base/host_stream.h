// A stream of a device whose kernels run on this machine's cores: one worker thread and its queue.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

#include "kernels/base/memory_pool.h"
#include "kernels/base/stream.h"

namespace convoy {

/// Runs closures in order on a thread of its own, which is the OpenMP master of the kernels.
class HostStream : public Stream {
 public:
  /// `pool` gives scratch memory and must outlive the stream; `on_start` runs first on the thread.
  HostStream(Device device, MemoryPool& pool, std::function<void()> on_start);
  ~HostStream() override;

  /// Queues `work`. After a failure the stream drops work until synchronize() has reported it.
  void submit(std::function<void()> work);

  Event record() override;
  void wait(const Event& event) override;
  void synchronize() override;
  void host_call(std::function<void()> work) override;
  void* scratch(std::size_t bytes) override;

 private:
  struct Item {
    std::function<void()> work;
    bool always;  // events and waits run even after a failure, so that nobody hangs
  };
  void push(std::function<void()> work, bool always);
  void loop();

  MemoryPool& pool_;
  MemoryPool::Block scratch_;
  std::function<void()> on_start_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable idle_;
  std::deque<Item> queue_;
  bool running_ = false;
  bool stopping_ = false;
  std::exception_ptr failure_;
  std::thread thread_;
};

/// The host stream behind `stream`; `internal` if it is a GPU's.
HostStream& host(Stream& stream);

}  // namespace convoy
