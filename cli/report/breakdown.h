// Where workers' time went: the share of each state, measured beside predicted, as bars and as a
// table whose rows sum to 100 %.
#pragma once

#include <string>

#include "cli/report/run_record.h"

namespace convoy::cli {

/// Of a run with accounts of its workers. `id` is unique on the page.
std::string breakdown_markup(const RunRecord& run, const std::string& id);

/// Bubble over all workers: starved, transfer and slot_full over their time. `predicted` or
/// measured; NaN without seconds.
double bubble_share(const WorkersEvent& workers, bool predicted);

/// Of equal stages: (p - 1) / (m + p - 1) for p stages and m micro-batches.
double bubble_of_equal_stages(int stages, int micro_batches);

}  // namespace convoy::cli
