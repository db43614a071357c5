#include "tests/engine/parallel/workers.h"

#include <condition_variable>
#include <mutex>
#include <thread>

#include "comm/thread_communicator.h"

namespace convoy::testing {
namespace {

// The first failure of all, and the number of workers that are done.
struct Outcome {
  std::mutex mutex;
  std::condition_variable changed;
  std::exception_ptr failure;
  int done = 0;

  void end(const std::exception_ptr& error) {
    std::lock_guard lock(mutex);
    if (error && !failure) failure = error;
    ++done;
    changed.notify_all();
  }
};

void run(int rank, HostCommunicator& communicator, Outcome& outcome,
         const std::function<void(int, HostCommunicator&)>& work) {
  try {
    work(rank, communicator);
    outcome.end(nullptr);
  } catch (const std::exception& error) {
    outcome.end(std::current_exception());
    const auto* ours = dynamic_cast<const Error*>(&error);
    communicator.abort(ours ? *ours : Error(ErrorKind::internal, error.what()));
  }
}

}  // namespace

void run_workers(int n, const std::function<void(int, HostCommunicator&)>& work) {
  const auto communicators = make_thread_communicators(n);
  Outcome outcome;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < n; ++rank) {
    threads.emplace_back(
        [&, rank] { run(rank, *communicators[static_cast<std::size_t>(rank)], outcome, work); });
  }
  {
    std::unique_lock lock(outcome.mutex);
    const bool in_time =
        outcome.changed.wait_for(lock, std::chrono::seconds(40), [&] { return outcome.done == n; });
    if (!in_time) communicators[0]->abort(Error(ErrorKind::internal, "test: it hangs"));
  }
  for (std::thread& thread : threads) thread.join();
  if (outcome.failure) std::rethrow_exception(outcome.failure);
}

}  // namespace convoy::testing
