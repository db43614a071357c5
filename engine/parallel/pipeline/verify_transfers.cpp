// Check 2 of a schedule, second half: what crosses the edges between stages.
#include <algorithm>

#include "engine/parallel/pipeline/places.h"
#include "engine/parallel/pipeline/verify_schedule.h"
#include "kernels/base/error.h"

namespace convoy {
namespace {

void check_once(const Places& places, const Instruction& instruction) {
  const int count = places.count(instruction);
  CONVOY_CHECK(count > 0, "schedule: {} of worker {} is missing", describe(instruction),
               places.owner(instruction.stage));
  CONVOY_CHECK(count == 1, "schedule: {} of worker {} stands there {} times", describe(instruction),
               places.owner(instruction.stage), count);
}

// A send and its receive, what makes the tensor and what uses it.
void check_message(const Places& places, const Instruction& made, const Instruction& send,
                   const Instruction& used) {
  const Instruction receive = counterpart(send);
  check_once(places, send);
  check_once(places, receive);
  CONVOY_CHECK(places.of(made) < places.of(send), "schedule: {} stands before {}", describe(send),
               describe(made));
  CONVOY_CHECK(places.of(receive) < places.of(used), "schedule: {} stands before {}",
               describe(used), describe(receive));
}

// Messages of one channel in the order of their sends, as their places at both ends.
void check_channel(const Places& places, ScheduleOp op, int stage, const std::vector<int>& ids) {
  std::vector<int> sent = ids, received = ids;
  auto by_place = [&](bool at_receiver) {
    return [&places, op, stage, at_receiver](int a, int b) {
      const Instruction left{op, stage, a}, right{op, stage, b};
      if (!at_receiver) return places.of(left) < places.of(right);
      return places.of(counterpart(left)) < places.of(counterpart(right));
    };
  };
  std::sort(sent.begin(), sent.end(), by_place(false));
  std::sort(received.begin(), received.end(), by_place(true));
  const auto [send, receive] = std::mismatch(sent.begin(), sent.end(), received.begin());
  if (send == sent.end()) return;
  const Instruction found{op, stage, *send}, taken = counterpart({op, stage, *receive});
  CONVOY_FAIL(usage, "schedule: message {} of its channel is {} at worker {}, {} at worker {}",
              send - sent.begin() + 1, describe(found), places.owner(stage), describe(taken),
              places.owner(taken.stage));
}

void check_edge(const Places& places, int stage, const std::vector<int>& ids) {
  using enum ScheduleOp;
  const int next = stage + 1;
  for (int k : ids) {
    check_message(places, {forward, stage, k}, {send_activation, stage, k}, {forward, next, k});
    check_message(places, {backward_input, next, k}, {send_gradient, next, k},
                  {backward_input, stage, k});
  }
  check_channel(places, send_activation, stage, ids);
  check_channel(places, send_gradient, next, ids);
}

// Whether a transfer crosses an edge between two workers.
bool has_edge(const Places& places, int stages, const Instruction& transfer) {
  const int other = counterpart(transfer).stage;
  if (other < 0 || other >= stages) return false;
  return places.owner(other) != places.owner(transfer.stage);
}

}  // namespace

void check_transfers(const Schedule& schedule, const ScheduleTask& task) {
  const Places places(schedule, task.stages);
  const std::vector<int> ids = all_micro_batches(task);
  for (const ScheduleLine& line : schedule.lines) {
    for (const Instruction& instruction : line) {
      if (!sends(instruction.op) && !receives(instruction.op)) continue;
      CONVOY_CHECK(has_edge(places, task.stages, instruction),
                   "schedule: {}: there is no other worker to exchange it with",
                   describe(instruction));
      CONVOY_CHECK(std::binary_search(ids.begin(), ids.end(), instruction.micro_batch),
                   "schedule: {}: there is no micro-batch {}", describe(instruction),
                   instruction.micro_batch);
    }
  }
  for (int stage = 0; stage + 1 < task.stages; ++stage) {
    if (places.crosses(stage)) check_edge(places, stage, ids);
  }
}

}  // namespace convoy
