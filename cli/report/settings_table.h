// The settings of runs side by side; those that differ are marked.
#pragma once

#include <string>
#include <vector>

#include "cli/report/run_record.h"

namespace convoy::cli {

/// Those that matter most, and all behind a click. Empty where no run has a `run` line.
std::string settings_markup(const std::vector<RunRecord>& runs);

}  // namespace convoy::cli
