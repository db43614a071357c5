// Progress for people: on a terminal one line that is painted over, elsewhere plain lines at
// intervals. Time is the sum of the steps' times, so the display needs no clock.
#pragma once

#include <cstdio>
#include <memory>
#include <string>

#include "cli/progress_format.h"
#include "engine/train/observer.h"

namespace convoy::cli {

enum class ProgressStyle { bar, plain };

/// `bar` for a terminal, unless NO_COLOR is set or TERM is dumb.
ProgressStyle progress_style(std::FILE* out);

class ProgressObserver : public Observer {
 public:
  /// Writes to `out`; notes and warnings go to `messages`. `data` is named in the first line.
  ProgressObserver(std::FILE* out, std::FILE* messages, ProgressStyle style, std::string data);
  ~ProgressObserver() override;
  ProgressObserver(const ProgressObserver&) = delete;
  ProgressObserver& operator=(const ProgressObserver&) = delete;

  void on_run(const RunInfo& info) override;
  void on_step(const StepEvent& event) override;
  void on_eval(const EvalEvent& event) override;
  void on_eval_progress(std::int64_t images, std::int64_t of) override;
  void on_checkpoint(const std::string& folder) override;
  void on_note(const std::string& line) override;
  void on_warning(const std::string& line) override;
  void on_end(const EndEvent& event) override;

 private:
  void show(const Standing& standing, bool last_of_epoch);
  void paint(const std::string& line);
  /// Takes the painted line away; whole lines follow.
  void clear();
  void line(std::FILE* file, const std::string& text);
  /// `resource` if what was written to `out` does not get there.
  void flush(std::FILE* file);

  std::FILE* out_;
  std::FILE* messages_;
  ProgressStyle style_;
  std::string data_;
  RunInfo info_;
  Pace pace_;
  std::int64_t epoch_ = 0;
  double loss_sum_ = 0;
  std::int64_t loss_images_ = 0;
  double shown_at_ = 0;  // Pace::elapsed() when the last line was shown
  bool painted_ = false;
  EvalEvent best_;
};

/// Notes and warnings alone, on stderr: what a run with --json still says there.
class MessageObserver : public Observer {
 public:
  void on_note(const std::string& line) override;
  void on_warning(const std::string& line) override;
};

/// People read progress; with `json`, stdout belongs to the metric lines.
std::unique_ptr<Observer> make_display(bool json, const std::string& data);

}  // namespace convoy::cli
