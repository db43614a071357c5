// Sends and receipts of one group. Those between two ranks in one direction follow each other; all
// others move side by side. A send waits for its receipt: nothing is kept in between.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "kernels/emulator/nccl_transfer.h"

namespace convoy::emulator::nccl {

class Messages {
 public:
  /// Tells the peers of the first message in each direction.
  Messages(Comm& comm, const std::vector<Call>& calls);
  /// Returns when all have been sent and received.
  void run();

 private:
  /// The messages to a peer, or from it; the first one is in work.
  struct Line {
    int peer = 0;
    bool sends = false;
    std::deque<Call> calls;
    std::uint64_t number = 0;  ///< of the first one, among all between the two
    std::optional<Transfer> transfer;
  };

  void tell(Line& line);
  bool look(Line& line);
  void begin(Line& line);
  Found look_at_all();
  std::optional<Trouble> trouble() const;
  std::optional<Trouble> trouble_of(const Line& line) const;
  NotePair& notes_of(const Line& line, bool mine) const;

  Comm& comm_;
  std::map<std::pair<int, bool>, Line> lines_;
};

/// A message to or from this rank that `rank` waits for and this rank has not answered.
std::optional<CallNote> unanswered_message(Comm& comm, int rank);

/// The error of two calls that do not go together.
Trouble differing_calls(const Comm& comm, const CallNote& mine, int rank, const CallNote& other);

}  // namespace convoy::emulator::nccl
