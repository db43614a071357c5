#include "cli/report_observer.h"

#include <filesystem>

#include "cli/report/report.h"
#include "cli/whole_file.h"

namespace convoy::cli {

std::vector<std::string> write_report(const std::vector<RunRecord>& runs, const std::string& path) {
  const Report report = make_report(runs);
  std::vector<std::string> written = {path};
  write_whole_file(path, report.html);
  if (report.split_svg) {
    written.push_back(std::filesystem::path(path).replace_extension(".svg").string());
    write_whole_file(written.back(), *report.split_svg);
  }
  return written;
}

ReportObserver::ReportObserver(Options options, Versions versions)
    : options_(std::move(options)), versions_(std::move(versions)) {
  prepare_file("--report", options_.settings.report);
  record_.name = options_.settings.report;
}

void ReportObserver::on_run(const RunInfo& info) {
  add_line(record_, run_line(options_, info, versions_));
}
void ReportObserver::on_step(const StepEvent& event) {
  add_line(record_, step_line(event));
}
void ReportObserver::on_eval(const EvalEvent& event) {
  add_line(record_, eval_line(event));
}
void ReportObserver::on_workers(const WorkersEvent& event) {
  add_line(record_, bubble_line(event));
}
void ReportObserver::on_spans(const SpansEvent& event) {
  if (!event.steps.empty()) add_line(record_, spans_line(event));
}
void ReportObserver::on_end(const EndEvent& event) {
  add_line(record_, end_line(event));
}

void ReportObserver::write() const {
  std::error_code ignored;  // a pipe cannot be read again
  const std::string& log = options_.settings.log;
  const bool readable = !log.empty() && std::filesystem::is_regular_file(log, ignored);
  write_report({readable ? read_run(log) : record_}, options_.settings.report);
}

}  // namespace convoy::cli
