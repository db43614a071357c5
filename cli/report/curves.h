// The curves of training: loss, accuracy, images/s, learning rate, gradient norm.
#pragma once

#include <string>
#include <vector>

#include "cli/report/run_record.h"

namespace convoy::cli {

/// Figures side by side; empty without step lines. Values that no run has are left out.
std::string curves_markup(const std::vector<RunRecord>& runs);

}  // namespace convoy::cli
