// Decides which failure of a job is the first one, and what is worth a note to people. For the
// thread of the watchdog that judges.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "comm/verdict.h"
#include "comm/watchdog_messages.h"

namespace convoy {

/// Tells of a slow worker after some slow steps in a row, and then not for a while.
class SlowNotes {
 public:
  /// The text to be told, if it is time to.
  std::optional<std::string> look(const std::optional<SlowWorker>& slow, double now);

 private:
  int worker_ = -1;
  std::int64_t step_ = -1;
  int count_ = 0;
  double counted_ = 0;
  double next_ = 0;
};

class Judge {
 public:
  /// `note` may be empty.
  explicit Judge(std::function<void(const std::string&)> note) : note_(std::move(note)) {}

  /// A process says that it cannot go on. The first one counts.
  void take(const Failed& failure, double now);
  bool has_report() const { return reported_.has_value(); }
  /// The verdict, once there is one.
  std::optional<Failed> look(const std::vector<ProcessState>& processes, const JudgeTime& time);

 private:
  void tell_notes(const std::vector<ProcessState>& processes, const JudgeTime& time);

  std::function<void(const std::string&)> note_;
  std::optional<Failed> reported_;
  double reported_at_ = 0;
  bool warned_ = false;
  SlowNotes slow_;
};

}  // namespace convoy
