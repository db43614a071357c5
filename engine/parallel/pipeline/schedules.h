// The schedules that can be made. A generator writes only F, I and W of each worker, a few lines
// each; `expand` (expand.h) adds the transfers, AR and ST. p workers, worker r = 0..p-1;
// m micro-batches, k = 0..m-1; v stages a worker: worker r holds stages r, p + r, 2p + r, ...
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/parallel/pipeline/instruction.h"

namespace convoy {

/// What a schedule is made for.
struct ScheduleShape {
  int workers = 1;                ///< p
  int micro_batches = 1;          ///< m, those with images
  int stages_per_worker = 1;      ///< v: more than 1 for `interleaved` alone
  std::vector<int> warm_up = {};  ///< 1f1b: forwards before the first backward of each worker;
                                  ///< empty: p-1-r. More of them hide slow transfers.
};

/// All forwards, then all backwards. With one micro-batch it is model parallelism.
Schedule fill_drain(const ScheduleShape& shape);
/// One forward, one backward in turns: at most p - r micro-batches live.
Schedule one_f_one_b(const ScheduleShape& shape);
/// 1f1b over several stages a worker: the bubble is divided by v.
Schedule interleaved(const ScheduleShape& shape);
/// 1f1b whose weight gradients wait for what would be idle time.
Schedule zb_h1(const ScheduleShape& shape);

/// A schedule by its name.
struct NamedSchedule {
  const char* name;
  Schedule (*make)(const ScheduleShape&);
  bool several_stages = false;     ///< takes more than one stage a worker
  bool weights_postponed = false;  ///< W may stand far behind I: SG must not wait for it
  bool phases_apart = false;  ///< no F after the first I: the slowest F and the slowest backward
                              ///< add, even of two stages
};

inline constexpr NamedSchedule kSchedules[] = {
    {.name = "fill-drain", .make = fill_drain, .phases_apart = true},
    {.name = "1f1b", .make = one_f_one_b},
    {.name = "interleaved", .make = interleaved, .several_stages = true},
    {.name = "zb-h1", .make = zb_h1, .weights_postponed = true},
};

/// `usage` for an unknown name, with the known ones.
const NamedSchedule& find_schedule(const std::string& name);

/// A schedule as the user asks for it.
struct ScheduleRequest {
  std::string name = "1f1b";
  int workers = 1;
  int stages_per_worker = 1;
  std::vector<int> micro_batches = {0};  ///< ids of the window's micro-batches that have images
  std::vector<int> warm_up = {};
  bool gradient_after_weight = false;  ///< see expand.h
};

/// The complete table of one window. `usage` for an unknown name (with the known ones) and for a
/// shape that the schedule does not take.
Schedule make_schedule(const ScheduleRequest& request);

}  // namespace convoy
