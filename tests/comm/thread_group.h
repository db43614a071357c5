// Runs a function on every rank of a group of threads. Checks of Catch2 are for one thread: ranks
// note what is wrong, and the test looks at the notes.
#pragma once

#include <exception>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "comm/thread_communicator.h"

namespace convoy::testing {

/// What Notes hold where all is well; compared with it, they are shown where not.
inline const std::string kNothing;

/// Notes of what went wrong, from any thread; the first few are kept.
class Notes {
 public:
  void add(const std::string& text) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (text_.size() < 1000) text_ += text + "\n";
  }
  void expect(bool holds, const std::string& text) {
    if (!holds) add(text);
  }
  std::string text() const { return text_; }

 private:
  std::mutex mutex_;
  std::string text_;
};

/// Calls `work` with each of `group` on a thread of its own; throws the first failure of them, for
/// which the others are aborted.
inline void run_ranks(std::vector<std::unique_ptr<HostCommunicator>>& group,
                      const std::function<void(HostCommunicator&)>& work) {
  std::exception_ptr failure;
  std::mutex mutex;
  std::vector<std::thread> threads;
  for (auto& member : group) {
    threads.emplace_back([&, rank = member.get()] {
      try {
        work(*rank);
      } catch (const std::exception& error) {
        const std::lock_guard<std::mutex> lock(mutex);
        if (!failure) failure = std::current_exception();
        rank->abort(Error(ErrorKind::internal, error.what()));
      }
    });
  }
  for (auto& thread : threads) thread.join();
  if (failure) std::rethrow_exception(failure);
}

inline void run_ranks(int n, const ThreadOptions& options,
                      const std::function<void(HostCommunicator&)>& work) {
  auto group = make_thread_communicators(n, options);
  run_ranks(group, work);
}

}  // namespace convoy::testing
