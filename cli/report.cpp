// `report`: the metrics of runs as one HTML file.
#include <fmt/format.h>

#include <filesystem>

#include "cli/commands.h"
#include "cli/json_lines.h"
#include "cli/report/report.h"
#include "cli/report/summary_of_run.h"
#include "cli/report_observer.h"
#include "cli/setup.h"
#include "cli/whole_file.h"
#include "engine/io/text.h"
#include "kernels/base/error.h"

namespace convoy::cli {
namespace {

/// report.html in the first run's folder, or the first file's name with .html.
std::string default_output(const std::string& operand) {
  std::error_code ignored;
  const std::filesystem::path path(operand);
  if (std::filesystem::is_directory(path, ignored)) return (path / "report.html").string();
  return std::filesystem::path(path).replace_extension(".html").string();
}

JsonObject run_json(const RunRecord& run) {
  const RunSummary summary = summary_of(run);
  const auto bubble = [&](const std::optional<double>& share) { return to_json(share); };
  JsonObject object{{"name", run.name}, {"steps", summary.steps}, {"loss", summary.loss}};
  object.add("top1", summary.best ? std::optional(summary.best->top1) : std::nullopt)
      .add("images_per_s", summary.rate ? std::optional(summary.rate->median) : std::nullopt)
      .add("step_s", summary.step_s)
      .add("predicted_step_s", summary.predicted_step_s)
      .add_raw("bubble", bubble(summary.bubble))
      .add_raw("predicted_bubble", bubble(summary.predicted_bubble))
      .add("split_rows", run.splits.size());
  return object;
}

void print_json(const std::vector<RunRecord>& runs, const std::vector<std::string>& written) {
  std::vector<JsonObject> objects;
  for (const RunRecord& run : runs) objects.push_back(run_json(run));
  print_line(JsonObject{{"type", "report"}, {"files", written}, {"runs", objects}}.text());
}

void print_text(const std::vector<RunRecord>& runs, const std::vector<std::string>& written) {
  for (const RunRecord& run : runs) {
    if (runs.size() > 1) print_line(printable(run.name));
    for (const Fact& fact : facts_of(summary_of(run))) {
      print_line(fmt::format("{:<12} {}{}", fact.what, fact.value,
                             fact.remark.empty() ? "" : "  (" + fact.remark + ")"));
    }
  }
  for (const std::string& path : written) print_line("report       " + printable(path));
}

}  // namespace

int run_report(Options& options) {
  CONVOY_CHECK(!options.operands.empty(),
               "report: no metrics given, expected FILE.jsonl or the folder of a run");
  CONVOY_CHECK(options.operands.size() <= kMostRuns,
               "report: {} runs are given, at most {} fit into one file", options.operands.size(),
               kMostRuns);
  const std::string path =
      options.output.empty() ? default_output(options.operands.front()) : options.output;
  prepare_file("--output", path);
  std::vector<RunRecord> runs;
  for (const std::string& operand : options.operands) runs.push_back(read_run(operand));
  const std::vector<std::string> written = write_report(runs, path);
  print_notes(options.notes);
  if (options.json) {
    print_json(runs, written);
  } else {
    print_text(runs, written);
  }
  return 0;
}

}  // namespace convoy::cli
