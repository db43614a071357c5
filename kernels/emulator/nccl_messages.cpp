#include "kernels/emulator/nccl_messages.h"

#include <fmt/core.h>

namespace convoy::emulator::nccl {

Trouble differing_calls(const Comm& comm, const CallNote& mine, int rank, const CallNote& other) {
  // The lower rank first, so that both say the same.
  const bool first = comm.rank() < rank;
  return {ncclInvalidUsage,
          fmt::format("ranks differ: rank {} calls {}, rank {} calls {}",
                      first ? comm.rank() : rank, describe(first ? mine : other),
                      first ? rank : comm.rank(), describe(first ? other : mine))};
}

std::optional<CallNote> unanswered_message(Comm& comm, int rank) {
  if (comm.memory().record(rank).busy.load() != Busy::messages) return std::nullopt;
  Channel& to_us = comm.memory().channel(rank, comm.rank());
  const std::uint64_t sends = to_us.sends.told.load(std::memory_order_acquire);
  if (sends > to_us.receipts.told.load()) return to_us.sends.notes[(sends - 1) % 2];
  Channel& to_them = comm.memory().channel(comm.rank(), rank);
  const std::uint64_t receipts = to_them.receipts.told.load(std::memory_order_acquire);
  if (receipts > to_them.sends.told.load()) return to_them.receipts.notes[(receipts - 1) % 2];
  return std::nullopt;
}

Messages::Messages(Comm& comm, const std::vector<Call>& calls) : comm_(comm) {
  for (const Call& call : calls) {
    const bool sends = call.note.kind == Kind::send;
    Line& line = lines_[{call.note.peer, sends}];
    line.peer = call.note.peer;
    line.sends = sends;
    line.calls.push_back(call);
  }
  for (auto& [key, line] : lines_) tell(line);
}

NotePair& Messages::notes_of(const Line& line, bool mine) const {
  Channel& channel = line.sends ? comm_.memory().channel(comm_.rank(), line.peer)
                                : comm_.memory().channel(line.peer, comm_.rank());
  return line.sends == mine ? channel.sends : channel.receipts;
}

void Messages::tell(Line& line) {
  NotePair& notes = notes_of(line, true);
  line.number = notes.told.load();
  notes.tell(line.calls.front().note);
  ring(comm_.memory().record(line.peer));
}

/// The peer has told its side of the message.
void Messages::begin(Line& line) {
  const Call& call = line.calls.front();
  const CallNote& other = notes_of(line, false).notes[line.number % 2];
  if (call.note.count != other.count || call.note.type != other.type) {
    if (comm_.as_hardware()) comm_.stand_still();
    comm_.stop(differing_calls(comm_, call.note, line.peer, other));
  }
  const std::size_t bytes = call.note.count * size_of(static_cast<ncclDataType_t>(call.note.type));
  line.transfer = line.sends ? Transfer::to(comm_, line.peer, call.send, bytes)
                             : Transfer::from(comm_, line.peer, call.receive, bytes);
}

/// Whether something moved.
bool Messages::look(Line& line) {
  if (line.calls.empty()) return false;
  if (!line.transfer) {
    if (notes_of(line, false).told.load(std::memory_order_acquire) <= line.number) return false;
    begin(line);
  }
  const bool moved = line.transfer->move();
  if (!line.transfer->done() || (line.sends && !line.transfer->taken())) return moved;
  line.transfer.reset();
  line.calls.pop_front();
  if (!line.calls.empty()) tell(line);
  return true;
}

Found Messages::look_at_all() {
  bool moved = false, done = true;
  for (auto& [key, line] : lines_) {
    moved |= look(line);
    done &= line.calls.empty();
  }
  return done ? Found::all : moved ? Found::progress : Found::nothing;
}

std::optional<Trouble> Messages::trouble_of(const Line& line) const {
  if (const auto trouble = comm_.trouble_with(line.peer)) return trouble;
  if (line.transfer || comm_.as_hardware()) return std::nullopt;
  const CallNote& mine = line.calls.front().note;
  const RankRecord& peer = comm_.memory().record(line.peer);
  const std::uint64_t collectives = peer.collectives.told.load();
  if (peer.busy.load() == Busy::collective && collectives > comm_.own().collectives.told.load()) {
    return differing_calls(comm_, mine, line.peer, peer.collectives.notes[(collectives - 1) % 2]);
  }
  const auto message = unanswered_message(comm_, line.peer);
  return message ? std::optional(differing_calls(comm_, mine, line.peer, *message)) : std::nullopt;
}

std::optional<Trouble> Messages::trouble() const {
  for (const auto& [key, line] : lines_) {
    if (line.calls.empty()) continue;
    if (auto trouble = trouble_of(line)) return trouble;
  }
  return std::nullopt;
}

void Messages::run() {
  comm_.wait([this] { return look_at_all(); }, [this] { return trouble(); });
}

}  // namespace convoy::emulator::nccl
