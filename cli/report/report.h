// A run, or several beside each other, as one HTML file that loads nothing and needs no script:
// verdict, settings, curves, split sweep, timeline, bubble, memory.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/report/run_record.h"

namespace convoy::cli {

/// At most so many runs are laid beside each other.
inline constexpr std::size_t kMostRuns = 12;
/// Bytes of a report.
inline constexpr std::size_t kMostBytes = 2'000'000;

struct Report {
  std::string html;
  std::optional<std::string> split_svg;  ///< the sweep as a file of its own
};

/// A part without data is left out, with a word that says so. `usage` for no run or too many.
Report make_report(const std::vector<RunRecord>& runs);

}  // namespace convoy::cli
