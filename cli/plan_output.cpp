#include "cli/plan_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <regex>
#include <set>
#include <sstream>

#include "cli/json_lines.h"
#include "cli/progress_format.h"
#include "engine/nn/slice.h"
#include "engine/parallel/pipeline/auto_cut.h"
#include "engine/parallel/pipeline/draw.h"
#include "engine/parallel/pipeline/schedule_text.h"
#include "engine/train/layout.h"

namespace convoy::cli {
namespace {

constexpr std::size_t kRows = 12;   // of the table
constexpr int kDrawnColumns = 100;  // of the schedule
constexpr int kDrawnWorkers = 16;
constexpr std::size_t kReasons = 3;
constexpr std::size_t kShownTable = 1000;  // instructions
constexpr const char* kTableFile = "table.txt";

// The fastest candidate that can be run of those that `wanted` likes; null if there is none.
template <class Wanted>
const PlanCandidate* fastest(const std::vector<PlanCandidate>& candidates, const Wanted& wanted) {
  for (const PlanCandidate& candidate : candidates) {
    if (candidate.dropped.empty() && wanted(candidate)) return &candidate;
  }
  return nullptr;
}

// The fastest of those that were run, if any was: else by the forecast.
const PlanCandidate* best_of(const PlanReport& report,
                             const std::function<bool(const PlanCandidate&)>& wanted) {
  const PlanCandidate* best = nullptr;
  double least = 0;
  for (const TimedLayout& timed : report.timed) {
    const PlanCandidate& candidate = report.candidates[timed.layout.place];
    if (!wanted(candidate) || (best && timed.median_s >= least)) continue;
    best = &candidate;
    least = timed.median_s;
  }
  return best ? best : fastest(report.candidates, wanted);
}

const PlanCandidate* best_pipeline(const PlanReport& report) {
  return best_of(report, [](const auto& candidate) { return candidate.stages > 1; });
}

const PlanCandidate* best_data_parallel(const PlanReport& report) {
  return best_of(report, [](const auto& candidate) { return candidate.layout == "data-parallel"; });
}

double most(const std::vector<double>& values) {
  return values.empty() ? 0 : *std::max_element(values.begin(), values.end());
}

std::string bytes_text(double bytes) {
  if (bytes >= 1e9) return fmt::format("{:.2f} GB", bytes / 1e9);
  return fmt::format("{:.1f} MB", bytes / 1e6);
}

std::string time_text(double seconds) {
  if (seconds >= 1) return fmt::format("{:.2f} s", seconds);
  if (seconds >= 1e-3) return fmt::format("{:.1f} ms", seconds * 1e3);
  return fmt::format("{:.1f} us", seconds * 1e6);
}

// Null where a candidate was not run.
const TimedLayout* timed_of(const PlanReport& report, const PlanCandidate& candidate) {
  for (const TimedLayout& timed : report.timed) {
    if (&report.candidates[timed.layout.place] == &candidate) return &timed;
  }
  return nullptr;
}

// Measured, where it was; else the forecast.
double seconds_of(const PlanReport& report, const PlanCandidate& candidate) {
  const TimedLayout* timed = timed_of(report, candidate);
  return timed ? timed->median_s : candidate.seconds;
}

std::string share_text(double share) {
  return fmt::format("{:.1f} %", 100 * share);
}

// Stages as --stages counts them.
int all_stages(const PlanCandidate& candidate) {
  return candidate.stages * candidate.stages_per_worker;
}

// "data-parallel, 2 replicas", "pipeline, 4 stages", "single".
std::string name_of(const PlanCandidate& candidate) {
  if (candidate.layout == "single") return candidate.layout;
  const Layout layout{candidate.replicas, candidate.stages, candidate.stages_per_worker};
  return fmt::format("{}, {}", candidate.layout, describe(layout));
}

// As in the table: images of a micro-batch x micro-batches.
std::string images_text(const PlanCandidate& candidate) {
  return fmt::format("{} images x{}", candidate.micro_batch_size, candidate.micro_batches);
}

std::string micro_batches_text(int count) {
  return fmt::format("{} micro-batch{}", count, count == 1 ? "" : "es");
}

std::string schedule_text(const PlanCandidate& candidate) {
  std::string text = candidate.stages == 1 ? "-" : candidate.schedule;
  if (!candidate.warm_up.empty()) text += '+';
  if (candidate.recompute) text += ", recompute";
  return text;
}

std::string row(const PlanCandidate& candidate) {
  return fmt::format("{:<14}{:>9}{:>8}  {:<24}{:>6} x{:<5}{:>11}{:>12}{:>9}{:>11}{:>12}",
                     candidate.layout, candidate.replicas, all_stages(candidate),
                     schedule_text(candidate), candidate.micro_batch_size, candidate.micro_batches,
                     time_text(candidate.seconds), rate(candidate.images_per_s),
                     share_text(candidate.bubble), share_text(candidate.all_reduce),
                     bytes_text(most(candidate.memory)));
}

// Why a candidate is dropped, for people: long numbers are bytes there.
std::string dropped_text(const PlanCandidate& candidate) {
  static const std::regex kBytes("([0-9]{7,})( bytes)?");
  std::string rest = candidate.dropped, text;
  for (std::smatch found; std::regex_search(rest, found, kBytes);) {
    text += found.prefix().str();
    text += bytes_text(std::stod(found[1]));
    rest = std::string(found.suffix());
  }
  text += rest;
  constexpr std::string_view kWhere = "schedule: ";
  return text.starts_with(kWhere) ? text.substr(kWhere.size()) : text;
}

// The fastest ones, and the fastest of each layout wherever it stands.
void add_table(const PlanReport& report, std::vector<std::string>& lines) {
  lines.push_back(fmt::format("{:<14}{:>9}{:>8}  {:<24}{:>12}{:>11}{:>12}{:>9}{:>11}{:>12}",
                              "layout", "replicas", "stages", "schedule", "images", "step",
                              "images/s", "bubble", "all-reduce", "most memory"));
  std::set<std::string> layouts;
  std::size_t rows = 0;
  for (const PlanCandidate& candidate : report.candidates) {
    if (!candidate.dropped.empty()) continue;
    const bool first = layouts.insert(candidate.layout).second;
    if (rows++ < kRows || first) lines.push_back(row(candidate));
  }
  if (rows > kRows) lines.push_back(fmt::format("... of {} candidates; --json tells all", rows));
}

// One line for what differs in numbers alone.
void add_dropped(const PlanReport& report, std::vector<std::string>& lines) {
  static const std::regex kNumbers("[0-9.]+ ?[MG]?B?");
  std::size_t dropped = 0;
  std::set<std::string> kinds;
  for (const PlanCandidate& candidate : report.candidates) {
    if (candidate.dropped.empty()) continue;
    ++dropped;
    const std::string name = name_of(candidate), text = dropped_text(candidate);
    const std::string kind = name + std::regex_replace(text, kNumbers, "#");
    if (kinds.size() == kReasons || !kinds.insert(kind).second) continue;
    lines.push_back(fmt::format("dropped: {}, {}: {}", name, images_text(candidate), text));
  }
  if (dropped > kinds.size()) lines.push_back(fmt::format("dropped: {} in all", dropped));
}

std::vector<std::string> drawing_of(const PlanReport& report, const PlanCandidate& candidate) {
  const Timeline timeline = simulate_candidate(report.task, candidate);
  const DrawOptions options{.unit_s = timeline.makespan / kDrawnColumns};
  std::vector<std::string> lines;
  const int workers = static_cast<int>(timeline.spans.size());
  for (int worker = 0; worker < std::min(workers, kDrawnWorkers); ++worker) {
    std::string label = fmt::format("  W{:<4}", worker);
    for (const std::string& text : draw_worker(timeline, worker, options)) {
      lines.push_back(label + text);
      label.assign(label.size(), ' ');
    }
  }
  if (workers > kDrawnWorkers) {
    lines.push_back(fmt::format("  ... and {} more workers", workers - kDrawnWorkers));
  }
  return lines;
}

// Its first line is a comment in a file.
std::string table_text(const PlanCandidate& candidate, const Schedule& table) {
  return fmt::format("# {}, {} stages on {} workers, {}\n", schedule_text(candidate),
                     all_stages(candidate), candidate.stages,
                     micro_batches_text(candidate.micro_batches)) +
         write_schedule(table);
}

// The pipeline's table, in lines that can be saved as they are.
void add_table_of(const PlanReport& report, const PlanCandidate& pipeline,
                  std::vector<std::string>& lines) {
  const Schedule table = schedule_of(report.task, pipeline);
  std::size_t instructions = 0;
  for (const ScheduleLine& line : table.lines) instructions += line.size();
  lines.emplace_back();
  if (instructions > kShownTable) {
    lines.push_back(
        fmt::format("its table has {} instructions: `table` of --json, for --schedule "
                    "FILE",
                    instructions));
    return;
  }
  lines.emplace_back("its table, for --schedule FILE:");
  std::istringstream text(table_text(pipeline, table));
  for (std::string line; std::getline(text, line);) lines.push_back(line);
}

void add_pipeline(const PlanReport& report, const PlanCandidate& pipeline,
                  std::vector<std::string>& lines) {
  lines.emplace_back();
  lines.push_back(fmt::format(
      "{} of {}, cut before {} (digits F, small letters I, "
      "capitals W, | step, dots idle; a column is {}):",
      schedule_text(pipeline), micro_batches_text(pipeline.micro_batches),
      fmt::join(cut_names(report, pipeline), ", "), time_text(pipeline.seconds / kDrawnColumns)));
  for (std::string& line : drawing_of(report, pipeline)) lines.push_back(std::move(line));
  add_table_of(report, pipeline, lines);
}

std::string lost_by(const PlanCandidate& candidate) {
  return fmt::format("{} of its workers' time waiting and {} in all-reduces",
                     share_text(candidate.bubble), share_text(candidate.all_reduce));
}

// Why a pipeline that takes less time is not recommended; empty where none does.
std::string why_not_faster(const PlanReport& report, const PlanCandidate& pipeline) {
  const double lead = seconds_of(report, report.best) - seconds_of(report, pipeline);
  if (lead <= 0) return "";
  const TimedLayout* best = timed_of(report, report.best);
  const TimedLayout* faster = timed_of(report, pipeline);
  if (best && faster) {
    return fmt::format("; the pipeline's lead of {} is within the spread of both measurements, {}",
                       time_text(lead), time_text(best->spread_s + faster->spread_s));
  }
  return fmt::format(
      "; the pipeline's lead of {} is less than {}, {:g} % of a step, which a "
      "forecast may be wrong by",
      time_text(lead), time_text(kForecastMargin * report.best.seconds), 100 * kForecastMargin);
}

JsonObject json_of(const PlanReport& report, const char* type, const PlanCandidate& candidate) {
  JsonObject line{{"type", type},
                  {"layout", candidate.layout},
                  {"replicas", candidate.replicas},
                  {"stages", all_stages(candidate)},
                  {"stages_per_worker", candidate.stages_per_worker},
                  {"schedule", candidate.schedule},
                  {"micro_batch_size", candidate.micro_batch_size},
                  {"micro_batches", candidate.micro_batches},
                  {"recompute", candidate.recompute},
                  {"warm_up", candidate.warm_up}};
  if (!candidate.dropped.empty()) return line.add("dropped", candidate.dropped);
  return line.add("cut", cut_names(report, candidate))
      .add("seconds", candidate.seconds)
      .add("images_per_s", candidate.images_per_s)
      .add("bubble", candidate.bubble)
      .add("all_reduce", candidate.all_reduce)
      .add("memory_bytes", candidate.memory)
      .add_raw("dropped", "null");
}

JsonObject head_of(const PlanReport& report) {
  const PlanMachine& machine = report.task.machine;
  return {{"type", "plan"},
          {"model", report.network.name()},
          {"batch", report.task.batch},
          {"workers", machine.workers},
          {"devices", report.workers},
          {"link_latency_s", machine.inside.latency_s},
          {"link_bytes_per_s", machine.inside.bytes_per_s},
          {"candidates", report.candidates.size()}};
}

}  // namespace

std::string candidate_text(const PlanCandidate& candidate) {
  const std::string schedule =
      candidate.stages > 1 ? fmt::format(", {}", schedule_text(candidate)) : "";
  return fmt::format("{}{}, {}", name_of(candidate), schedule, images_text(candidate));
}

std::vector<std::string> timed_text(const std::vector<PlanCandidate>& candidates,
                                    const std::vector<TimedLayout>& timed) {
  std::vector<std::string> lines = {fmt::format("{:<72}{:>11}{:>11}{:>10}{:>9}", "timed",
                                                "forecast", "median", "spread", "off by")};
  for (const TimedLayout& one : timed) {
    lines.push_back(
        fmt::format("{:<72}{:>11}{:>11}{:>10}{:>9}", candidate_text(candidates[one.layout.place]),
                    time_text(one.layout.forecast_s), time_text(one.median_s),
                    time_text(one.spread_s), share_text(one.layout.forecast_s / one.median_s - 1)));
  }
  return lines;
}

std::vector<std::string> cut_names(const PlanReport& report, const PlanCandidate& candidate) {
  std::vector<std::string> names;
  for (int place : places_of(report.profile, candidate.node_ends)) {
    names.push_back(cut_name(report.network, place));
  }
  return names;
}

std::string flags_of(const PlanReport& report, const PlanCandidate& candidate) {
  std::string flags = fmt::format("--batch {}", report.task.batch);
  if (candidate.replicas > 1) flags += fmt::format(" --replicas {}", candidate.replicas);
  if (candidate.stages > 1) {
    flags += fmt::format(" --stages {} --schedule {}", all_stages(candidate),
                         candidate.warm_up.empty() ? candidate.schedule : kTableFile);
    if (candidate.stages_per_worker > 1) {
      flags += fmt::format(" --stages-per-worker {}", candidate.stages_per_worker);
    }
    flags += fmt::format(" --cut {}", fmt::join(cut_names(report, candidate), ","));
  }
  if (candidate.micro_batches > 1) {
    flags += fmt::format(" --micro-batch-size {}", candidate.micro_batch_size);
  }
  return flags + (candidate.recompute ? " --recompute" : "");
}

std::string reason_of(const PlanReport& report) {
  const PlanCandidate* pipeline = best_pipeline(report);
  const PlanCandidate* replicas = best_data_parallel(report);
  if (!pipeline && !replicas) return "there is nothing to compare it with";
  if (!pipeline) return "no pipeline can be run";
  std::string text = replicas ? "" : "data parallel cannot be run; ";
  text += fmt::format("the best pipeline takes {} ({})", time_text(seconds_of(report, *pipeline)),
                      lost_by(*pipeline));
  if (replicas) {
    text += fmt::format(", data parallel {} ({})", time_text(seconds_of(report, *replicas)),
                        lost_by(*replicas));
  }
  if (report.best.layout == "single") {
    text += fmt::format(", one device {}", time_text(seconds_of(report, report.best)));
  }
  return text + why_not_faster(report, *pipeline);
}

std::vector<std::string> plan_text(const PlanReport& report) {
  std::vector<std::string> lines;
  lines.push_back(
      fmt::format("{}, batch {}, {}", report.network.name(), report.task.batch, report.workers));
  add_table(report, lines);
  add_dropped(report, lines);
  if (const PlanCandidate* pipeline = best_pipeline(report)) {
    add_pipeline(report, *pipeline, lines);
  }
  if (!report.timed.empty()) {
    lines.emplace_back();
    for (std::string& line : timed_text(report.candidates, report.timed)) {
      lines.push_back(std::move(line));
    }
  }
  lines.emplace_back();
  const double seconds = seconds_of(report, report.best);
  lines.push_back(fmt::format("recommended: {}, {} a step, {} images/s", report.best.layout,
                              time_text(seconds),
                              rate(static_cast<double>(report.task.batch) / seconds)));
  lines.push_back("  " + reason_of(report));
  lines.push_back("  " + flags_of(report, report.best));
  if (!report.best.warm_up.empty()) {
    lines.push_back(
        fmt::format("  {}: its table, to be saved first; plain 1f1b has less warm-up", kTableFile));
  }
  return lines;
}

std::vector<std::string> plan_json(const PlanReport& report) {
  std::vector<std::string> lines = {head_of(report).text()};
  for (const PlanCandidate& candidate : report.candidates) {
    lines.push_back(json_of(report, "candidate", candidate).text());
  }
  for (const TimedLayout& timed : report.timed) {
    JsonObject line = json_of(report, "timed", report.candidates[timed.layout.place]);
    lines.push_back(line.add("measured_s", timed.seconds)
                        .add("median_s", timed.median_s)
                        .add("spread_s", timed.spread_s)
                        .text());
  }
  JsonObject best = json_of(report, "recommendation", report.best);
  best.add("reason", reason_of(report)).add("flags", flags_of(report, report.best));
  if (const PlanCandidate* pipeline = best_pipeline(report)) {
    best.add("drawing", drawing_of(report, *pipeline));
    best.add("table", table_text(*pipeline, schedule_of(report.task, *pipeline)));
  }
  lines.push_back(best.text());
  return lines;
}

}  // namespace convoy::cli
