#include "engine/parallel/pipeline/worker_memory.h"

#include <algorithm>
#include <deque>
#include <set>
#include <utility>

#include "kernels/base/error.h"

namespace convoy {
namespace {

double images_of(const Instruction& instruction, const MemoryTask& task) {
  return static_cast<double>(task.images.at(instruction.micro_batch));
}

// Parameters and workspace of the line's stages, and the slots of what it receives.
double fixed_bytes(const ScheduleLine& line, const MemoryTask& task) {
  std::set<int> stages;
  std::set<std::pair<ScheduleOp, int>> channels;
  for (const Instruction& instruction : line) {
    stages.insert(instruction.stage);
    if (receives(instruction.op)) channels.emplace(instruction.op, instruction.stage);
  }
  double bytes = 0, workspace = 0;
  for (int stage : stages) {
    bytes += task.costs.at(stage).memory.parameter_bytes;
    workspace = std::max(workspace, task.costs[stage].memory.workspace_bytes);
  }
  const auto largest = std::max_element(task.images.begin(), task.images.end());
  const int id = static_cast<int>(largest - task.images.begin());
  for (const auto& [op, stage] : channels) {
    bytes += task.slots * message_bytes({op, stage, id}, task);
  }
  return bytes + workspace;
}

}  // namespace

double message_bytes(const Instruction& transfer, const MemoryTask& task) {
  const StageMemory& memory = task.costs.at(transfer.stage).memory;
  const bool input =
      transfer.op == ScheduleOp::receive_activation || transfer.op == ScheduleOp::send_gradient;
  return (input ? memory.input_bytes : memory.output_bytes) * images_of(transfer, task);
}

MemoryMeter::MemoryMeter(const ScheduleLine& line, const MemoryTask& task)
    : task_(task), bytes_(fixed_bytes(line, task)) {
  peak_ = {bytes_, bytes_, line.empty() ? Instruction{} : line.front()};
}

void MemoryMeter::note(double more, const Instruction& instruction) {
  if (bytes_ + more <= peak_.bytes) return;
  peak_.bytes = bytes_ + more;
  peak_.at = instruction;
}

void MemoryMeter::run(const Instruction& instruction) {
  if (of_window(instruction.op)) return;
  const StageMemory& memory = task_.costs.at(instruction.stage).memory;
  const double images = images_of(instruction, task_);
  switch (instruction.op) {
    case ScheduleOp::forward:
      bytes_ += memory.kept_bytes * images;
      break;
    case ScheduleOp::backward_input:
      note(memory.backward_bytes * images, instruction);
      bytes_ += (memory.weight_bytes - memory.kept_bytes) * images;
      break;
    case ScheduleOp::backward_weight:
      bytes_ -= memory.weight_bytes * images;
      break;
    case ScheduleOp::send_activation:
    case ScheduleOp::send_gradient:
      bytes_ += message_bytes(instruction, task_);
      break;
    default:
      return;  // receives land in slots that are counted from the start
  }
  note(0, instruction);
}

std::vector<MemoryPeak> worst_memory(const Schedule& schedule, const MemoryTask& task) {
  std::vector<MemoryPeak> peaks;
  for (const ScheduleLine& line : schedule.lines) {
    MemoryMeter meter(line, task);
    std::map<std::pair<ScheduleOp, int>, std::deque<double>> sent;
    for (const Instruction& instruction : line) {
      if (sends(instruction.op)) {
        auto& held = sent[{instruction.op, instruction.stage}];
        held.push_back(message_bytes(instruction, task));
        if (static_cast<int>(held.size()) > task.slots) {
          meter.release(held.front());
          held.pop_front();
        }
      }
      meter.run(instruction);
    }
    peaks.push_back(meter.peak());
  }
  return peaks;
}

void check_memory(const Schedule& schedule, const MemoryTask& task,
                  const std::vector<double>& caps) {
  const std::vector<MemoryPeak> peaks = worst_memory(schedule, task);
  CONVOY_CHECK(caps.size() == peaks.size(), "schedule: {} memory caps for {} workers", caps.size(),
               peaks.size());
  for (std::size_t worker = 0; worker < peaks.size(); ++worker) {
    const auto& [bytes, fixed, at] = peaks[worker];
    if (caps[worker] <= 0 || bytes <= caps[worker]) continue;
    CONVOY_FAIL(resource,
                "schedule: worker {} needs {:.0f} bytes at {} ({:.0f} of them for parameters, "
                "workspace and receives), its cap is {:.0f}",
                worker, bytes, describe(at), fixed, caps[worker]);
  }
}

}  // namespace convoy
