#include "cli/guarded_observer.h"

#include <utility>

namespace convoy::cli {

GuardedObserver::GuardedObserver(std::vector<Observer*> shown, std::function<void()> stop)
    : shown_(std::move(shown)), stop_(std::move(stop)) {}

void GuardedObserver::check() const {
  if (failure_) std::rethrow_exception(failure_);
}

template <class Call>
void GuardedObserver::pass(Call call) {
  if (failure_) return;  // the error is to be the only line
  try {
    for (Observer* observer : shown_) call(*observer);
  } catch (...) {
    failure_ = std::current_exception();
    stop_();
  }
}

void GuardedObserver::on_run(const RunInfo& info) {
  pass([&](Observer& observer) { observer.on_run(info); });
}
void GuardedObserver::on_step(const StepEvent& event) {
  pass([&](Observer& observer) { observer.on_step(event); });
}
void GuardedObserver::on_eval(const EvalEvent& event) {
  pass([&](Observer& observer) { observer.on_eval(event); });
}
void GuardedObserver::on_eval_progress(std::int64_t images, std::int64_t of) {
  pass([&](Observer& observer) { observer.on_eval_progress(images, of); });
}
void GuardedObserver::on_workers(const WorkersEvent& event) {
  pass([&](Observer& observer) { observer.on_workers(event); });
}
void GuardedObserver::on_spans(const SpansEvent& event) {
  pass([&](Observer& observer) { observer.on_spans(event); });
}
void GuardedObserver::on_checkpoint(const std::string& folder) {
  pass([&](Observer& observer) { observer.on_checkpoint(folder); });
}
void GuardedObserver::on_note(const std::string& line) {
  pass([&](Observer& observer) { observer.on_note(line); });
}
void GuardedObserver::on_warning(const std::string& line) {
  pass([&](Observer& observer) { observer.on_warning(line); });
}
void GuardedObserver::on_end(const EndEvent& event) {
  pass([&](Observer& observer) { observer.on_end(event); });
}

}  // namespace convoy::cli
