// An instruction as a worker's progress board shows it to the watchdog.
#pragma once

#include <cstdint>
#include <string_view>

#include "comm/progress.h"
#include "engine/parallel/pipeline/instruction.h"

namespace convoy {

/// For ProgressBoard::begin_instruction().
inline InstructionMark mark_of(const Instruction& instruction) {
  const std::string_view op = name(instruction.op);
  InstructionMark mark;
  for (std::size_t i = 0; i < op.size() && i < mark.op.size(); ++i) mark.op[i] = op[i];
  mark.stage = static_cast<std::uint16_t>(instruction.stage);
  mark.micro_batch = of_window(instruction.op) ? -1 : instruction.micro_batch;
  return mark;
}

}  // namespace convoy
