#include "engine/train/worker_threads.h"

#include <system_error>
#include <utility>

#include "kernels/base/error.h"

namespace convoy {

WorkerThreads::WorkerThreads(int workers, OnFailure on_failure)
    : workers_(workers), on_failure_(std::move(on_failure)) {
  if (workers_ == 1) return;
  try {
    for (int i = 0; i < workers_; ++i) threads_.emplace_back([this, i] { loop(i); });
  } catch (const std::system_error& error) {
    stop();
    CONVOY_FAIL(resource, "thread {} of {} workers cannot be started: {}", threads_.size() + 1,
                workers_, error.what());
  }
}

WorkerThreads::~WorkerThreads() {
  stop();
}

void WorkerThreads::stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  threads_.clear();
}

void WorkerThreads::run(const std::function<void(int)>& work) {
  std::unique_lock lock(mutex_);
  failure_ = nullptr;
  work_ = &work;
  busy_ = workers_;
  ++round_;
  if (workers_ == 1) {
    lock.unlock();
    work_on(0);
    lock.lock();
  } else {
    wake_.notify_all();
    done_.wait(lock, [&] { return busy_ == 0; });
  }
  work_ = nullptr;
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void WorkerThreads::loop(int worker) {
  std::uint64_t done = 0;
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [&] { return stopping_ || round_ != done; });
      if (stopping_) return;
      done = round_;
    }
    work_on(worker);
  }
}

void WorkerThreads::work_on(int worker) {
  std::exception_ptr failure;
  try {
    (*work_)(worker);
  } catch (...) {
    failure = std::current_exception();
  }
  std::lock_guard lock(mutex_);
  if (failure && !failure_) failure_ = on_failure_(worker, failure);
  if (--busy_ == 0) done_.notify_all();
}

}  // namespace convoy
