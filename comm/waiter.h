// How a thread waits for another worker: it spins a little, then yields, then sleeps; it stops when
// the group is aborted, and tells the progress board meanwhile.
#pragma once

#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <typeindex>

#include "comm/progress.h"
#include "kernels/base/error.h"

namespace convoy {

/// Set once for a group and those split from it. Thread-safe.
class AbortFlag {
 public:
  bool raised() const { return raised_.load(std::memory_order_acquire); }
  /// Takes the first error; later ones are its echoes.
  void raise(const Error& why);
  /// The error; raised() must hold.
  Error error() const;
  [[noreturn]] void rethrow() const { throw error(); }
  /// Waits until it is raised, at most for `seconds`; whether it is.
  bool wait_for(double seconds) const;
  /// What watches for the flag in this process, one of each type: made by `make` where there is
  /// none.
  template <class T, class Make>
  std::shared_ptr<T> companion(Make&& make) {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::weak_ptr<void>& known = companions_[typeid(T)];
    auto found = std::static_pointer_cast<T>(known.lock());
    if (!found) known = found = make();
    return found;
  }

 private:
  std::atomic<bool> raised_{false};
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::optional<Error> why_;
  std::map<std::type_index, std::weak_ptr<void>> companions_;
};

/// The waits of a thread that works beside a worker's own: it sleeps longer and longer between
/// looks, so that it takes no core from those who compute. Thread-safe.
class SideWait {
 public:
  /// Waits in work and later ones throw.
  void stop();
  /// Whether the worker itself waits for the outcome now: the thread looks at once, and more often.
  void set_urgent(bool urgent);
  /// Whether nothing is on its way and nobody waits for it: long pauses do, unless it is urgent.
  void set_idle(bool idle) { idle_.store(idle); }
  /// The pause after look number `round`.
  void pause(int round) const;

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::atomic<bool> stopped_{false};
  std::atomic<bool> urgent_{false};
  std::atomic<bool> idle_{false};
};

/// Rounds of spinning for `workers` that share `cores`: none where they outnumber them.
int spins_for(int workers, int cores);

class Waiter {
 public:
  /// `board` may be null. `spins`: rounds before the thread yields, 0 where workers outnumber
  /// cores.
  Waiter(std::shared_ptr<const AbortFlag> abort, ProgressBoard* board, int spins)
      : abort_(std::move(abort)), board_(board), spins_(spins) {}

  /// For the thread that `side` belongs to; its beats are the board's all the same.
  Waiter(std::shared_ptr<const AbortFlag> abort, ProgressBoard* board, const SideWait& side)
      : abort_(std::move(abort)), board_(board), side_(&side) {}

  /// Returns when `ready()` holds; throws once the group is aborted.
  template <class Ready>
  void until(Ready&& ready) {
    for (int round = 0; !ready(); ++round) pause(round);
  }
  ProgressBoard* board() const { return board_; }

 private:
  void pause(int round);

  std::shared_ptr<const AbortFlag> abort_;
  ProgressBoard* board_;
  int spins_ = 0;
  const SideWait* side_ = nullptr;
};

}  // namespace convoy
