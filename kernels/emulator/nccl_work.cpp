#include "kernels/emulator/nccl_work.h"

#include <fmt/core.h>

#include "kernels/emulator/device_memory.h"
#include "kernels/emulator/nccl_messages.h"
#include "kernels/emulator/nccl_ring.h"

namespace convoy::emulator::nccl {
namespace {

// Checks that keep shadows of memory hear of what a copy would have told them.
void tell_written(const Comm& comm, const Call& call) {
  MemoryObserver* observer = memory_observer();
  if (!observer || !call.receive) return;
  const bool all = call.note.kind == Kind::all_gather;
  const std::size_t bytes = call.note.count * size_of(static_cast<ncclDataType_t>(call.note.type));
  observer->written(call.receive, bytes * static_cast<std::size_t>(all ? comm.ranks() : 1));
}

/// What this rank is in, for the others.
class BusyScope {
 public:
  BusyScope(Comm& comm, Busy busy) : record_(comm.own()) { record_.busy.store(busy); }
  ~BusyScope() { record_.busy.store(Busy::no); }
  BusyScope(const BusyScope&) = delete;
  BusyScope& operator=(const BusyScope&) = delete;

 private:
  RankRecord& record_;
};

std::optional<Trouble> trouble_with_any(Comm& comm, const CallNote& mine, std::uint64_t number) {
  for (int rank = 0; rank < comm.ranks(); ++rank) {
    if (comm.memory().record(rank).collectives.told.load() > number) continue;
    if (const auto trouble = comm.trouble_with(rank)) return trouble;
    const auto message = unanswered_message(comm, rank);
    if (message && !comm.as_hardware()) return differing_calls(comm, mine, rank, *message);
  }
  return std::nullopt;
}

/// Tells the others of the call, and compares it with theirs.
void agree(Comm& comm, const CallNote& mine) {
  NotePair& notes = comm.own().collectives;
  const std::uint64_t number = notes.told.load();
  notes.tell(mine);
  comm.ring_all();
  const auto all_told = [&] {
    for (int rank = 0; rank < comm.ranks(); ++rank) {
      if (comm.memory().record(rank).collectives.told.load(std::memory_order_acquire) <= number) {
        return Found::nothing;
      }
    }
    return Found::all;
  };
  comm.wait(all_told, [&] { return trouble_with_any(comm, mine, number); });
  for (int rank = 0; rank < comm.ranks(); ++rank) {
    const CallNote& other = comm.memory().record(rank).collectives.notes[number % 2];
    if (other == mine) continue;
    if (comm.as_hardware()) comm.stand_still();
    comm.stop(differing_calls(comm, mine, rank, other));
  }
}

void run_collective(Comm& comm, const Call& call) {
  const BusyScope busy(comm, Busy::collective);
  agree(comm, call.note);
  switch (call.note.kind) {
    case Kind::all_reduce:
      return all_reduce(comm, call);
    case Kind::reduce:
      return reduce(comm, call);
    case Kind::broadcast:
      return broadcast(comm, call);
    case Kind::reduce_scatter:
      return reduce_scatter(comm, call);
    case Kind::all_gather:
      return all_gather(comm, call);
    case Kind::none:
    case Kind::send:
    case Kind::receive:
      return;
  }
}

void run_all(Comm& comm, const std::vector<Call>& calls) {
  std::vector<Call> messages;
  for (const Call& call : calls) {
    if (is_message(call.note.kind)) {
      messages.push_back(call);
    } else {
      run_collective(comm, call);
    }
  }
  if (messages.empty()) return;
  Messages work(comm, messages);
  const BusyScope busy(comm, Busy::messages);
  work.run();
}

}  // namespace

void run_calls(Comm& comm, const std::vector<Call>& calls) {
  if (!comm.begin_work()) return;
  try {
    run_all(comm, calls);
    for (const Call& call : calls) tell_written(comm, call);
  } catch (const Aborted&) {  // whoever has aborted it knows
  }
  comm.end_work();
}

}  // namespace convoy::emulator::nccl
