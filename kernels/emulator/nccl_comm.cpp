#include "kernels/emulator/nccl_comm.h"

#include <fmt/core.h>
#include <sched.h>
#include <unistd.h>

namespace convoy::emulator::nccl {
namespace {

constexpr int kYields = 100;  // before the first sleep
constexpr int kSleepsToTrouble = 10;
constexpr int kSuspicions = 3;  // what was seen once may be over

}  // namespace

Comm::~Comm() {
  if (aside_.joinable()) aside_.join();
}

ncclResult_t Comm::fail(ncclResult_t result, const std::string& text) {
  note_error(result, text);
  state_.store(result);
  return result;
}

ncclResult_t Comm::note_error(ncclResult_t result, const std::string& text) {
  const std::lock_guard lock(mutex_);
  last_error_ = text;
  return result;
}

std::string Comm::last_error() const {
  const std::lock_guard lock(mutex_);
  return last_error_;
}

ncclResult_t Comm::join(const Address& address) {
  try {
    const ncclResult_t result = meet(address);
    if (result == ncclSuccess) state_.store(ncclSuccess);
    return result;
  } catch (const Aborted&) {
    own().life.store(Life::aborted);
    ring_all();
    return fail(ncclInternalError, "the communicator was aborted while its ranks came together");
  }
}

ncclResult_t Comm::meet(const Address& address) {
  {
    const std::lock_guard lock(mutex_);
    memory_ = Memory::open(address);
  }
  if (!memory_) {
    return fail(ncclSystemError,
                "the unique id leads to no memory that this process can reach: it is of another "
                "host, or its process has ended");
  }
  Header& header = memory_->header();
  std::int32_t ranks = 0;
  if (!header.ranks.compare_exchange_strong(ranks, ranks_) && ranks != ranks_) {
    return fail(ncclInvalidArgument,
                fmt::format("rank {} was given {} ranks, another one {}", rank_, ranks_, ranks));
  }
  if (!memory_->take(rank_) || own().life.load() != Life::absent) {
    return fail(ncclInvalidUsage, fmt::format("rank {} has come twice", rank_));
  }
  if (!memory_->add_channels(ranks_)) return fail(ncclSystemError, "no room for shared memory");
  own().process = getpid();
  own().device = device_;
  own().life.store(Life::joined);
  header.joined.fetch_add(1);
  ring_all();
  const auto all_here = [&] {
    return header.joined.load() == ranks_ ? Found::all : Found::nothing;
  };
  wait(all_here, [] { return std::nullopt; });
  close_made(address);
  return check_devices();
}

ncclResult_t Comm::check_devices() {
  for (int a = 0; a < ranks_; ++a) {
    for (int b = a + 1; b < ranks_; ++b) {
      const RankRecord& first = memory_->record(a);
      const RankRecord& second = memory_->record(b);
      if (first.process != second.process || first.device != second.device) continue;
      return fail(ncclInvalidUsage,
                  fmt::format("ranks {} and {} are both on device {} of process {}", a, b,
                              first.device, first.process));
    }
  }
  return ncclSuccess;
}

ncclResult_t Comm::finalize() {
  try {
    return part();
  } catch (const Aborted&) {
    return ncclInternalError;
  }
}

ncclResult_t Comm::part() {
  std::unique_lock lock(mutex_);
  const std::shared_ptr<EventPoint> last = last_work_;
  lock.unlock();
  if (last) last->wait();
  if (state_.load() != ncclSuccess && state_.load() != ncclInProgress) return state_.load();
  own().life.store(Life::finalized);
  ring_all();
  const auto all_done = [this] {
    for (int rank = 0; rank < ranks_; ++rank) {
      if (memory_->record(rank).life.load() < Life::finalized) return Found::nothing;
    }
    return Found::all;
  };
  const auto trouble = [this]() -> std::optional<Trouble> {
    for (int rank = 0; rank < ranks_; ++rank) {
      if (memory_->record(rank).life.load() != Life::joined || !memory_->is_dead(rank)) continue;
      return trouble_with(rank);
    }
    return std::nullopt;
  };
  wait(all_done, trouble);
  finalized_.store(true);
  if (state_.load() == ncclInProgress) state_.store(ncclSuccess);
  return state_.load();
}

void Comm::run_aside(std::function<void()> work) {
  if (aside_.joinable()) aside_.join();
  state_.store(ncclInProgress);
  aside_ = std::thread(std::move(work));
}

void Comm::join_aside(const Address& address) {
  run_aside([this, address] { join(address); });
}

void Comm::finalize_aside() {
  run_aside([this] { finalize(); });
}

void Comm::abort() {
  aborted_.store(true);
  std::unique_lock lock(mutex_);
  if (memory_) {
    own().life.store(Life::aborted);
    ring_all();
  }
  idle_.wait(lock, [this] { return working_ == 0; });
}

cudaError_t Comm::queue(cudaStream_t stream, std::function<void()> work) {
  cudaStreamCaptureStatus captures = cudaStreamCaptureStatusNone;
  if (const cudaError_t error = cudaStreamIsCapturing(stream, &captures); error != cudaSuccess) {
    return error;
  }
  if (captures != cudaStreamCaptureStatusNone)
    return queue_work(stream, {std::move(work), false, true});
  const std::lock_guard lock(mutex_);
  if (last_work_ && last_stream_ != stream && !last_work_->reached()) {
    const cudaError_t error =
        queue_work(stream, {[point = last_work_] { point->wait(); }, true, true});
    if (error != cudaSuccess) return error;
  }
  last_work_ = std::make_shared<EventPoint>();
  last_stream_ = stream;
  const cudaError_t error = queue_work(stream, {std::move(work), false, true});
  // Queued even so: somebody may wait for it.
  const cudaError_t end = queue_work(stream, {[point = last_work_] { point->reach(); }, true});
  if (end != cudaSuccess) last_work_->reach();
  return error;
}

bool Comm::begin_work() {
  const std::lock_guard lock(mutex_);
  if (aborted_.load()) return false;
  ++working_;
  return true;
}

void Comm::end_work() {
  const std::lock_guard lock(mutex_);
  if (--working_ == 0) idle_.notify_all();
}

void Comm::ring_all() const {
  for (int rank = 0; rank < ranks_; ++rank) ring(memory_->record(rank));
}

void Comm::wait(const std::function<Found()>& look,
                const std::function<std::optional<Trouble>()>& trouble) {
  RankRecord& bell = own();
  int suspected = 0;
  for (int idle = 0;; ++idle) {
    const std::uint32_t seen = bell.bell.load();
    const Found found = look();
    if (found == Found::all) return;
    if (aborted_.load()) throw Aborted{};
    if (found == Found::progress) idle = suspected = 0;
    if (idle < kYields) {
      sched_yield();
      continue;
    }
    wait_for_bell(bell, seen);
    if (idle % kSleepsToTrouble != 0) continue;
    const std::optional<Trouble> what = trouble();
    suspected = what ? suspected + 1 : 0;
    if (suspected == kSuspicions) stop(*what);
  }
}

void Comm::stop(const Trouble& trouble) {
  fail(trouble.result, trouble.text);
  stand_still();
}

void Comm::stand_still() {
  wait([] { return Found::nothing; }, [] { return std::nullopt; });
  throw Aborted{};
}

std::optional<Trouble> Comm::trouble_with(int rank) const {
  if (rank == rank_) return std::nullopt;
  const Life life = memory_->record(rank).life.load();
  if (life == Life::aborted) {
    return Trouble{ncclRemoteError, fmt::format("rank {} has aborted the communicator", rank)};
  }
  if (life == Life::finalized) {
    return Trouble{ncclRemoteError, fmt::format("rank {} has left the communicator", rank)};
  }
  if (memory_->is_dead(rank)) {
    return Trouble{ncclRemoteError, fmt::format("the process of rank {} has ended", rank)};
  }
  return std::nullopt;
}

}  // namespace convoy::emulator::nccl
