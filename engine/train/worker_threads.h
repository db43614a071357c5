// The threads that drive the devices of a process, one each. A call runs on all of them at once, so
// that workers may wait for each other in the middle of it.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace convoy {

/// A single worker has no thread of its own: it works on the caller's.
class WorkerThreads {
 public:
  /// Called once, on the thread of the first worker that fails, with its number and what it threw:
  /// it must wake the others.
  using OnFailure = std::function<std::exception_ptr(int worker, std::exception_ptr failure)>;

  /// `on_failure` gives what run() throws then.
  WorkerThreads(int workers, OnFailure on_failure);
  ~WorkerThreads();
  WorkerThreads(const WorkerThreads&) = delete;
  WorkerThreads& operator=(const WorkerThreads&) = delete;

  /// Runs work(0) to work(workers - 1), each on its thread, and waits for all. Throws the first
  /// failure in time; the others are its echoes.
  void run(const std::function<void(int worker)>& work);

 private:
  void stop();
  void loop(int worker);
  void work_on(int worker);

  const int workers_;
  OnFailure on_failure_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable done_;
  const std::function<void(int)>* work_ = nullptr;
  std::uint64_t round_ = 0;
  int busy_ = 0;
  bool stopping_ = false;
  std::exception_ptr failure_;
  std::vector<std::jthread> threads_;
};

}  // namespace convoy
