// The sweep of `bench split`: images/s by the images of a micro-batch, with error bars; what is not
// split is a level.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/report/run_record.h"
#include "cli/report/svg.h"

namespace convoy::cli {

/// None without rows of a sweep.
std::optional<Svg> draw_split_chart(const std::vector<RunRecord>& runs);

/// The figure with its table of numbers; empty without rows.
std::string split_markup(const std::vector<RunRecord>& runs);

}  // namespace convoy::cli
