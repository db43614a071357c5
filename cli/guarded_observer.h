// Between a run and what shows it: where stdout or the log cannot be written any more, the run is
// asked to stop, so that it saves first, and the error is told afterwards.
#pragma once

#include <exception>
#include <functional>
#include <string>
#include <vector>

#include "engine/train/observer.h"

namespace convoy::cli {

class GuardedObserver : public Observer {
 public:
  /// Events go to `shown` until one of them throws; `stop` is called then.
  GuardedObserver(std::vector<Observer*> shown, std::function<void()> stop);

  /// Throws what was thrown.
  void check() const;

  void on_run(const RunInfo& info) override;
  void on_step(const StepEvent& event) override;
  void on_eval(const EvalEvent& event) override;
  void on_eval_progress(std::int64_t images, std::int64_t of) override;
  void on_workers(const WorkersEvent& event) override;
  void on_spans(const SpansEvent& event) override;
  void on_checkpoint(const std::string& folder) override;
  void on_note(const std::string& line) override;
  void on_warning(const std::string& line) override;
  void on_end(const EndEvent& event) override;

 private:
  template <class Call>
  void pass(Call call);

  std::vector<Observer*> shown_;
  std::function<void()> stop_;
  std::exception_ptr failure_;
};

}  // namespace convoy::cli
