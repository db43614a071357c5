// Runs a table for real: a thread a worker and bounded channels, nothing but transfers, order, and
// the meeting of all workers at the last ST of a window.
#pragma once

#include <string>

#include "engine/parallel/pipeline/instruction.h"

namespace convoy::testing {

enum class RunEnd {
  finished,
  hung,   ///< every worker that has not finished waits, and none can go on
  mixed,  ///< a worker received something else than its table says
  late,   ///< the limit in time, which nothing should reach
};

struct TableRun {
  RunEnd end = RunEnd::finished;
  std::string text;  ///< where workers stand
};

/// Channels hold `capacity` messages (1 and more), one channel for each stage edge and direction.
TableRun run_table(const Schedule& schedule, int capacity);

}  // namespace convoy::testing
