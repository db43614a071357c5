// The tables of windows: made, or read from a file, and proved before anything runs by them.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/parallel/pipeline/instruction.h"
#include "engine/train/layout.h"

namespace convoy {

struct ScheduleOptions {
  std::string name = "1f1b";
  std::vector<int> warm_up = {};
  bool gradient_after_weight = false;
  /// Instead of a made one; with the name of its file for messages.
  std::optional<Schedule> table = {};
  std::string table_source = "schedule";
};

/// Tables by number of micro-batches. Not thread-safe.
class WindowTables {
 public:
  /// `slots`: messages that a link holds.
  WindowTables(const Layout& layout, const ScheduleOptions& options, int slots)
      : layout_(layout), options_(options), slots_(slots) {}

  /// The table of a window of so many micro-batches, proved. `usage` for a given table that does
  /// not fit them, or gives a stage to another worker than the layout.
  const Schedule& training(int micro_batches);
  /// RA, F and SA alone.
  const Schedule& forwards(int micro_batches);

 private:
  Schedule make(int micro_batches) const;
  void prove(const Schedule& schedule, int micro_batches) const;

  const Layout layout_;
  const ScheduleOptions options_;
  const int slots_;
  std::map<int, Schedule> training_;
  std::map<int, Schedule> forwards_;
};

}  // namespace convoy
