#include "engine/parallel/pipeline/schedule_walk.h"

#include <algorithm>

#include "kernels/base/error.h"

namespace convoy {
namespace {

// The stage before the edge that a transfer crosses.
int edge_of(const Instruction& transfer) {
  const bool from_before =
      transfer.op == ScheduleOp::receive_activation || transfer.op == ScheduleOp::send_gradient;
  return transfer.stage - (from_before ? 1 : 0);
}

bool carries_gradient(const Instruction& transfer) {
  return transfer.op == ScheduleOp::send_gradient || transfer.op == ScheduleOp::receive_gradient;
}

int stages_of(const Schedule& schedule) {
  int stages = 0;
  for (const ScheduleLine& line : schedule.lines) {
    for (const Instruction& instruction : line) stages = std::max(stages, instruction.stage + 1);
  }
  return stages;
}

}  // namespace

ScheduleWalk::ScheduleWalk(const Schedule& schedule, const ChannelRules& rules)
    : schedule_(schedule),
      rules_(rules),
      owners_(stage_owners(schedule)),
      positions_(schedule.lines.size()) {
  CONVOY_CHECK(rules.capacity >= 0, "schedule: channels of {} messages, expected at least 0",
               rules.capacity);
  const int stages = stages_of(schedule);
  owners_.resize(stages + 2, -1);  // also for transfers beyond the ends, which nobody answers
  const std::size_t workers = schedule.lines.size() + 1;
  channels_.resize(rules.per_worker_pair ? workers * workers : 2 * (stages + 2));
}

bool ScheduleWalk::run(const Visit& visit) {
  for (bool moved = true; moved;) {
    moved = false;
    for (int worker = 0; worker < schedule_.workers(); ++worker) {
      while (advance(worker, visit)) moved = true;
    }
  }
  return blocked().empty();
}

const Instruction* ScheduleWalk::current(int worker) const {
  if (worker < 0 || positions_[worker] == schedule_.lines[worker].size()) return nullptr;
  return &schedule_.lines[worker][positions_[worker]];
}

bool ScheduleWalk::advance(int worker, const Visit& visit) {
  const Instruction* instruction = current(worker);
  if (!instruction) return false;
  if (rules_.capacity > 0) return pass(worker, *instruction, visit);
  if (receives(instruction->op)) return false;  // its sender moves both
  if (sends(instruction->op)) return meet(*instruction, visit);
  return pass(worker, *instruction, visit);
}

bool ScheduleWalk::pass(int worker, const Instruction& instruction, const Visit& visit) {
  if (sends(instruction.op)) {
    auto& channel = channels_[channel_of(instruction)];
    if (static_cast<int>(channel.size()) >= rules_.capacity) return false;
    channel.push_back(instruction);
  } else if (receives(instruction.op)) {
    auto& channel = channels_[channel_of(instruction)];
    if (channel.empty() || channel.front() != counterpart(instruction)) return false;
    channel.pop_front();
  }
  visit(worker, instruction);
  ++positions_[worker];
  return true;
}

// Without room in channels, sender and receiver move together.
bool ScheduleWalk::meet(const Instruction& send, const Visit& visit) {
  const Instruction receive = counterpart(send);
  if (receive.stage < 0) return false;
  const int sender = owners_[send.stage], receiver = owners_[receive.stage];
  const Instruction* waiting = current(receiver);
  if (!waiting || *waiting != receive) return false;
  visit(sender, send);
  visit(receiver, receive);
  ++positions_[sender];
  ++positions_[receiver];
  return true;
}

std::size_t ScheduleWalk::channel_of(const Instruction& transfer) const {
  const int edge = edge_of(transfer);
  const bool gradient = carries_gradient(transfer);
  if (!rules_.per_worker_pair) return 2 * (edge + 1) + (gradient ? 1 : 0);
  const int before = edge < 0 ? 0 : owners_[edge] + 1, after = owners_[edge + 1] + 1;
  const std::size_t workers = schedule_.lines.size() + 1;
  return gradient ? after * workers + before : before * workers + after;
}

int ScheduleWalk::worker_of(const Instruction& instruction) const {
  for (int worker = 0; worker < schedule_.workers(); ++worker) {
    const ScheduleLine& line = schedule_.lines[worker];
    if (std::find(line.begin(), line.end(), instruction) != line.end()) return worker;
  }
  return -1;
}

Instruction ScheduleWalk::awaited_by(const Instruction& instruction) const {
  const auto& channel = channels_[channel_of(instruction)];
  return channel.empty() ? counterpart(instruction) : counterpart(channel.front());
}

std::vector<Blocked> ScheduleWalk::blocked() const {
  std::vector<Blocked> all;
  for (int worker = 0; worker < schedule_.workers(); ++worker) {
    const Instruction* instruction = current(worker);
    if (!instruction) continue;
    const Instruction awaited = awaited_by(*instruction);
    all.push_back(
        {worker, static_cast<int>(positions_[worker]), *instruction, awaited, worker_of(awaited)});
  }
  return all;
}

std::string describe(const Blocked& blocked) {
  const std::string who = blocked.awaited_worker < 0
                              ? "which no worker has"
                              : fmt::format("of worker {}", blocked.awaited_worker);
  return fmt::format("worker {} at {} (instruction {}) waits for {} {}", blocked.worker,
                     describe(blocked.at), blocked.position + 1, describe(blocked.awaited), who);
}

}  // namespace convoy
