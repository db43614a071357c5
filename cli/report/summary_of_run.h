// The few numbers that stand for a run: at the head of a report, in comparisons, for --json.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/report/run_record.h"

namespace convoy::cli {

/// Images/s over the steps after the first, which is warm-up.
struct Rate {
  double median = 0;
  double low = 0;   ///< 10 % of the steps are slower
  double high = 0;  ///< 10 % are faster
  std::size_t steps = 0;
};

struct BestTop1 {
  double top1 = 0;
  double epoch = 0;
};

/// What the sweep says: the best pipeline against one device with the whole batch, and against the
/// same micro-batches.
struct SpeedUp {
  double split = 0;
  double against_whole = 0;
  std::optional<double> against_same_split;
};

struct RunSummary {
  std::optional<std::int64_t> steps;
  std::optional<double> seconds;
  std::optional<double> loss;  ///< mean of the last steps, a tenth of all but at most 100
  std::optional<BestTop1> best;
  std::optional<Rate> rate;
  std::optional<double> step_s;
  std::optional<double> predicted_step_s;
  std::optional<double> bubble;
  std::optional<double> predicted_bubble;
  std::optional<double> equal_stages_bubble;
  std::optional<SpeedUp> speed_up;
};

RunSummary summary_of(const RunRecord& run);

/// A number with what it is, and a smaller word on it.
struct Fact {
  std::string what;
  std::string value;
  std::string remark;
};

/// What is known, for people; the same `what` in every run.
std::vector<Fact> facts_of(const RunSummary& summary);

}  // namespace convoy::cli
