// Proves a schedule before a step runs. Every fault is `usage` and names the instruction. The
// checks build on each other: stages, micro-batches, transfers, windows, then deadlock.
#pragma once

#include <vector>

#include "engine/parallel/pipeline/instruction.h"
#include "engine/parallel/pipeline/schedule_walk.h"

namespace convoy {

/// What a schedule has to do.
struct ScheduleTask {
  int stages = 1;
  std::vector<std::vector<int>> windows = {{0}};  ///< ascending ids of each window's micro-batches
};

/// All checks below. What passes cannot hang, whatever the speed of workers and links.
void verify_schedule(const Schedule& schedule, const ScheduleTask& task,
                     const ChannelRules& rules = {});

/// Each stage has one owner, no stage and no worker is empty.
void check_stages(const Schedule& schedule, int stages);
/// On each stage F, I and W take every micro-batch once, in ascending order, F before I before W;
/// stages on one worker follow each other.
void check_micro_batches(const Schedule& schedule, const ScheduleTask& task);
/// Between stages of two workers each tensor is sent once, after it was made, and received once,
/// before it is used, in the same order at both ends; no other transfers.
void check_transfers(const Schedule& schedule, const ScheduleTask& task);
/// AR comes after the last W of a stage's window, ST after AR, the next window's F after ST. At its
/// last ST of a window a worker waits for all others: all else of the window comes before.
void check_windows(const Schedule& schedule, const ScheduleTask& task);
/// The walk reaches the end; else each blocked instruction is named, and whom it waits for.
void check_no_deadlock(const Schedule& schedule, const ChannelRules& rules);

/// All replicas of a stage begin collectives in the same order: AR, and F and I, in which batch
/// norm may talk to the other replicas. Replicas that run one table are equal by themselves.
void check_same_collectives(const std::vector<Schedule>& replicas);

}  // namespace convoy
