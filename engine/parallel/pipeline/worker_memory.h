// Bytes on one worker while it goes along its line. F adds kept activations by images, I swaps
// part of them for output gradients, W frees them, and what is sent is held until it is gone.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "engine/parallel/pipeline/instruction.h"
#include "engine/parallel/pipeline/stage_cost.h"

namespace convoy {

/// What memory is counted for. Lists are per stage and per micro-batch id.
struct MemoryTask {
  std::vector<StageCost> costs;
  std::vector<std::int64_t> images;
  int slots = 2;  ///< messages a channel holds: as many receives are posted, sends outstanding
};

/// Where a worker needs most.
struct MemoryPeak {
  double bytes = 0;
  double fixed_bytes = 0;  ///< of these: parameters, workspace, receive slots
  Instruction at = {};
};

/// Counts bytes instruction by instruction.
class MemoryMeter {
 public:
  /// Starts with what the worker of `line` always holds. `task` is kept by reference.
  MemoryMeter(const ScheduleLine& line, const MemoryTask& task);

  /// Runs one instruction; a send adds its message, which stays until release.
  void run(const Instruction& instruction);
  /// A message of so many bytes has left.
  void release(double bytes) { bytes_ -= bytes; }
  const MemoryPeak& peak() const { return peak_; }

 private:
  void note(double more, const Instruction& instruction);

  const MemoryTask& task_;
  double bytes_ = 0;
  MemoryPeak peak_;
};

/// Bytes of the message of a transfer.
double message_bytes(const Instruction& transfer, const MemoryTask& task);

/// The most that each worker can need, whatever the speed of links: the last `slots` sends of a
/// channel may all be still on their way.
std::vector<MemoryPeak> worst_memory(const Schedule& schedule, const MemoryTask& task);

/// `resource` for the first worker that needs more than its cap, with the instruction, the need and
/// the cap in bytes. A cap of 0 is none.
void check_memory(const Schedule& schedule, const MemoryTask& task,
                  const std::vector<double>& caps);

}  // namespace convoy
