#include "engine/train/clock_offsets.h"

#include <algorithm>
#include <limits>

#include "engine/parallel/pipeline/worker_states.h"

namespace convoy {
namespace {

constexpr int kRounds = 5;
constexpr int kTag = 902;

// The round that was quickest tells best.
ClockOffset ask(HostCommunicator& group, int peer) {
  ClockOffset best{0, std::numeric_limits<double>::infinity()};
  for (int round = 0; round < kRounds; ++round) {
    double there = 0;
    const double begin = StateClock::now();
    group.send_now(&there, sizeof there, peer, kTag);
    group.receive_now(&there, sizeof there, peer, kTag);
    const double end = StateClock::now();
    if ((end - begin) / 2 < best.error) best = {(begin + end) / 2 - there, (end - begin) / 2};
  }
  group.send_now(&best.seconds, sizeof best.seconds, peer, kTag);
  return best;
}

ClockOffset answer(HostCommunicator& group) {
  ClockOffset offset;
  for (int round = 0; round < kRounds; ++round) {
    double asked = 0;
    group.receive_now(&asked, sizeof asked, 0, kTag);
    const double now = StateClock::now();
    group.send_now(&now, sizeof now, 0, kTag);
  }
  group.receive_now(&offset.seconds, sizeof offset.seconds, 0, kTag);
  return offset;
}

}  // namespace

ClockOffset offset_to_leader(HostCommunicator& group, bool in_process, int local_workers) {
  if (!in_process) return answer(group);
  ClockOffset worst;
  for (int rank = local_workers; group.rank() == 0 && rank < group.size(); ++rank) {
    worst.error = std::max(worst.error, ask(group, rank).error);
  }
  return worst;
}

}  // namespace convoy
