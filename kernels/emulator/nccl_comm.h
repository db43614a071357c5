// One rank of an emulated NCCL communicator: how it comes together with the others, what state it
// is in, and how its work waits. The work itself is in nccl_work.h.
#pragma once

#include <atomic>
#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "kernels/emulator/nccl_memory.h"
#include "kernels/emulator/streams.h"

namespace convoy::emulator::nccl {

/// Ends the work of a communicator that was aborted.
struct Aborted : std::exception {};

/// What a look at something that is waited for has found.
enum class Found { nothing, progress, all };

/// Why a wait will never end.
struct Trouble {
  ncclResult_t result;
  std::string text;
};

/// Thread-safe, save for join() and for work, which is done one after the other.
class Comm {
 public:
  Comm(int rank, int ranks, int device) : rank_(rank), ranks_(ranks), device_(device) {}
  ~Comm();
  Comm(const Comm&) = delete;
  Comm& operator=(const Comm&) = delete;

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }
  int device() const { return device_; }

  /// Returns when all ranks have come, with the result that state() has from then on.
  ncclResult_t join(const Address& address);
  /// All ranks have finished their work; returns when each has said so.
  ncclResult_t finalize();
  /// The same on a thread of its own; state() is ncclInProgress meanwhile.
  void join_aside(const Address& address);
  void finalize_aside();
  /// Ends all waits of this rank and tells the others; returns when no work runs any more.
  void abort();

  /// ncclInProgress, ncclSuccess, or the first error.
  ncclResult_t state() const { return state_.load(); }
  bool is_finalized() const { return finalized_.load(); }
  std::string last_error() const;
  /// Notes an error of a call, and returns its result.
  ncclResult_t note_error(ncclResult_t result, const std::string& text);

  /// Queues work in `stream`, after all that this communicator has queued in others.
  cudaError_t queue(cudaStream_t stream, std::function<void()> work);
  /// Of queued work: begun when it runs; false if it must not, as the communicator was aborted.
  bool begin_work();
  void end_work();

  // For work, on a stream's thread.

  Memory& memory() const { return *memory_; }
  RankRecord& own() const { return memory_->record(rank_); }
  bool as_hardware() const { return memory_->header().as_hardware != 0; }
  /// Calls `look` until it has found all. `trouble` is asked now and then while nothing moves: if
  /// it says the same for a while, that is the communicator's error. Throws Aborted.
  void wait(const std::function<Found()>& look,
            const std::function<std::optional<Trouble>()>& trouble);
  /// Sets the asynchronous error and stands still until the communicator is aborted.
  [[noreturn]] void stop(const Trouble& trouble);
  /// Waits for the abort.
  [[noreturn]] void stand_still();
  /// Whether `rank` will answer no more.
  std::optional<Trouble> trouble_with(int rank) const;
  void ring_all() const;

 private:
  ncclResult_t meet(const Address& address);
  ncclResult_t check_devices();
  ncclResult_t part();
  ncclResult_t fail(ncclResult_t result, const std::string& text);
  void run_aside(std::function<void()> work);

  const int rank_, ranks_, device_;
  std::unique_ptr<Memory> memory_;
  std::atomic<ncclResult_t> state_{ncclInProgress};
  std::atomic<bool> aborted_{false};
  std::atomic<bool> finalized_{false};
  mutable std::mutex mutex_;
  std::condition_variable idle_;
  int working_ = 0;
  std::string last_error_;
  std::shared_ptr<EventPoint> last_work_;
  cudaStream_t last_stream_ = nullptr;
  std::thread aside_;
};

}  // namespace convoy::emulator::nccl
