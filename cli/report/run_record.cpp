#include "cli/report/run_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

namespace convoy::cli {
namespace {

using Json = nlohmann::json;

constexpr double kAbsent = std::numeric_limits<double>::quiet_NaN();

const Json* member(const Json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

double number_in(const Json* value, double otherwise) {
  return value && value->is_number() ? value->get<double>() : otherwise;
}

double number(const Json& object, const char* key, double otherwise = kAbsent) {
  return number_in(member(object, key), otherwise);
}

std::int64_t integer(const Json& object, const char* key) {
  const double value = number(object, key, 0);
  return std::abs(value) < 9e15 ? static_cast<std::int64_t>(value) : 0;
}

std::string text(const Json& object, const char* key) {
  const Json* value = member(object, key);
  return value && value->is_string() ? value->get<std::string>() : std::string();
}

const Json& list(const Json& object, const char* key) {
  static const Json none = Json::array();
  const Json* value = member(object, key);
  return value && value->is_array() ? *value : none;
}

/// Any value as a reader wants to see it.
std::string shown(const Json& value) {
  if (value.is_null()) return "";
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_structured()) return value.dump();
  std::string all;
  for (const auto& item : value.items()) {
    if (!all.empty()) all += ", ";
    if (value.is_object()) all += item.key() + " ";
    all += shown(item.value());
  }
  return all;
}

void add_run(RunRecord& record, const nlohmann::ordered_json& line) {
  record.settings.clear();
  for (const auto& item : line.items()) {
    if (item.key() != "type") record.settings.emplace_back(item.key(), shown(Json(item.value())));
  }
}

void add_step(RunRecord& record, const Json& line) {
  record.steps.push_back({.step = integer(line, "step"),
                          .epoch = number(line, "epoch"),
                          .loss = number(line, "loss"),
                          .lr = number(line, "lr"),
                          .images = number(line, "images", 0),
                          .images_per_s = number(line, "images_per_s", 0),
                          .grad_norm = number(line, "grad_norm")});
}

void add_eval(RunRecord& record, const Json& line) {
  record.evals.push_back({.step = record.steps.empty() ? 0 : record.steps.back().step,
                          .epoch = number(line, "epoch"),
                          .loss = number(line, "loss"),
                          .top1 = number(line, "top1"),
                          .top5 = number(line, "top5"),
                          .images = number(line, "images", 0)});
}

StateSeconds state_seconds(const Json& worker, const char* key) {
  StateSeconds seconds = {};
  const Json* states = member(worker, key);
  for (int state = 0; states && state < kWorkerStates; ++state) {
    seconds[static_cast<std::size_t>(state)] = number(*states, kStateNames[state], 0);
  }
  return seconds;
}

WorkerAccount account_of(const Json& worker, std::int64_t steps) {
  WorkerAccount account;
  account.worker = static_cast<int>(integer(worker, "worker"));
  account.replica = static_cast<int>(integer(worker, "replica"));
  for (const Json& stage : list(worker, "stages")) {
    account.stages.push_back(static_cast<int>(number_in(&stage, 0)));
  }
  account.steps = steps;
  account.measured = state_seconds(worker, "seconds");
  account.predicted = state_seconds(worker, "predicted");
  account.peak_bytes = number(worker, "peak_bytes", 0);
  account.predicted_peak_bytes = number(worker, "predicted_peak_bytes", 0);
  return account;
}

bool same_layout(const WorkersEvent& a, const WorkersEvent& b) {
  return std::equal(a.workers.begin(), a.workers.end(), b.workers.begin(), b.workers.end(),
                    [](const WorkerAccount& x, const WorkerAccount& y) {
                      return x.worker == y.worker && x.stages == y.stages;
                    });
}

void add_to(StateSeconds& sum, const StateSeconds& more) {
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += more[i];
}

void add_to(WorkersEvent& sum, const WorkersEvent& more) {
  const auto before = static_cast<double>(sum.steps);
  const auto after = static_cast<double>(more.steps);
  const double all = std::max(before + after, 1.0);
  sum.step_s = (sum.step_s * before + more.step_s * after) / all;
  sum.predicted_step_s = (sum.predicted_step_s * before + more.predicted_step_s * after) / all;
  sum.steps += more.steps;
  for (std::size_t i = 0; i < sum.workers.size(); ++i) {
    WorkerAccount& account = sum.workers[i];
    const WorkerAccount& other = more.workers[i];
    account.steps += other.steps;
    add_to(account.measured, other.measured);
    add_to(account.predicted, other.predicted);
    account.peak_bytes = std::max(account.peak_bytes, other.peak_bytes);
    account.predicted_peak_bytes =
        std::max(account.predicted_peak_bytes, other.predicted_peak_bytes);
  }
}

// A run that went on in another layout is shown in its last one.
void add_workers(RunRecord& record, const Json& line) {
  WorkersEvent event;
  event.steps = integer(line, "steps");
  event.step_s = number(line, "step_s", 0);
  event.predicted_step_s = number(line, "predicted_step_s", 0);
  for (const Json& worker : list(line, "workers")) {
    event.workers.push_back(account_of(worker, event.steps));
  }
  if (event.workers.empty()) return;
  if (record.workers && same_layout(*record.workers, event)) {
    add_to(*record.workers, event);
  } else {
    record.workers = std::move(event);
  }
}

/// The place of `name` in a list of names, -1 if it is not there.
template <std::size_t N>
int place_of(const std::string& name, const char* const (&names)[N]) {
  const auto found = std::find(std::begin(names), std::end(names), name);
  return found == std::end(names) ? -1 : static_cast<int>(found - std::begin(names));
}

/// "F 1.0", "AR 1".
std::optional<Instruction> instruction_of(const std::string& words) {
  const std::size_t space = words.find(' ');
  const int op = place_of(words.substr(0, space), kOpNames);
  if (op < 0 || space == std::string::npos) return {};
  Instruction instruction{static_cast<ScheduleOp>(op)};
  if (std::sscanf(words.c_str() + space, " %d.%d", &instruction.stage, &instruction.micro_batch) <
      1) {
    return {};
  }
  return instruction;
}

std::optional<Span> span_of(const Json& parts) {
  if (!parts.is_array() || parts.size() != 5) return {};
  for (const int i : {0, 1, 2}) {
    if (!parts[static_cast<std::size_t>(i)].is_string()) return {};
  }
  const int state = place_of(parts[0].get<std::string>(), kStateNames);
  const int track = place_of(parts[2].get<std::string>(), kTrackNames);
  const auto instruction = instruction_of(parts[1].get<std::string>());
  const double begin = number_in(&parts[3], kAbsent);
  const double end = number_in(&parts[4], kAbsent);
  if (state < 0 || track < 0 || !instruction || !(end >= begin)) return {};
  return Span{static_cast<SpanTrack>(track), static_cast<WorkerState>(state), *instruction, begin,
              end};
}

std::vector<Span> spans_in(const Json& worker, const char* key) {
  std::vector<Span> spans;
  for (const Json& parts : list(worker, key)) {
    if (const auto span = span_of(parts)) spans.push_back(*span);
  }
  return spans;
}

void add_spans(RunRecord& record, const Json& line) {
  SpanRecord spans;
  spans.step.step = integer(line, "step");
  spans.step.end = number(line, "step_s", 0);
  spans.all_workers = integer(line, "all_workers");
  for (const Json& worker : list(line, "workers")) {
    spans.step.workers.push_back({.worker = static_cast<int>(integer(worker, "worker")),
                                  .replica = static_cast<int>(integer(worker, "replica")),
                                  .measured = spans_in(worker, "measured"),
                                  .predicted = spans_in(worker, "predicted")});
  }
  if (!spans.step.workers.empty()) record.spans = std::move(spans);
}

void add_end(RunRecord& record, const Json& line) {
  record.end =
      EndEvent{integer(line, "steps"), number(line, "seconds", 0), text(line, "weights_hash"), ""};
}

SweepRow sweep_row(const Json& line) {
  SweepRow row{.mode = text(line, "mode"),
               .schedule = text(line, "schedule"),
               .cut = text(line, "cut"),
               .split = number(line, "split"),
               .micro_batches = number(line, "micro_batches"),
               .replicas = number(line, "replicas", 1),
               .stages = number(line, "stages", 1),
               .seconds = {},
               .mean_s = number(line, "mean_s"),
               .std_s = number(line, "std_s", 0),
               .images_per_s = number(line, "images_per_s"),
               .speed_up = number(line, "speed_up"),
               .speed_up_same_split = number(line, "speed_up_same_split"),
               .ceiling = number(line, "ceiling"),
               .share_of_ceiling = number(line, "share_of_ceiling"),
               .bubble = number(line, "bubble"),
               .bubble_predicted = number(line, "bubble_predicted")};
  for (const Json& seconds : list(line, "seconds")) {
    row.seconds.push_back(number_in(&seconds, kAbsent));
  }
  return row;
}

/// "pipelining is fastest: holds. pipeline 12, 1f1b is 1.84 times as fast as single 12".
std::string verdict_of(const Json& line) {
  return fmt::format("{}: {}. {} is {:.2f} times as fast as {}", text(line, "claim"),
                     text(line, "verdict"), text(line, "row"), number(line, "ratio"),
                     text(line, "against"));
}

// A line of `bench split`: a measured row has a mode, a verdict a claim; another one says what
// holds for all rows.
void add_split(RunRecord& record, const nlohmann::ordered_json& ordered) {
  const Json line(ordered);
  if (!text(line, "mode").empty()) {
    record.splits.push_back(sweep_row(line));
    return;
  }
  if (!text(line, "claim").empty()) {
    record.split_verdicts.push_back(verdict_of(line));
    return;
  }
  record.split_facts.clear();
  for (const auto& item : ordered.items()) {
    if (item.key() != "bench") record.split_facts.emplace_back(item.key(), shown(item.value()));
  }
}

}  // namespace

std::string RunRecord::setting(std::string_view key) const {
  for (const auto& [name, value] : settings) {
    if (name == key) return value;
  }
  return "";
}

bool add_line(RunRecord& record, const std::string& line) {
  const auto ordered = nlohmann::ordered_json::parse(line, nullptr, false);
  if (!ordered.is_object()) return false;
  const Json json(ordered);
  const std::string type = text(json, "type");
  if (type == "run") add_run(record, ordered);
  if (type == "step") add_step(record, json);
  if (type == "eval") add_eval(record, json);
  if (type == "bubble") add_workers(record, json);
  if (type == "spans") add_spans(record, json);
  if (type == "end") add_end(record, json);
  if (text(json, "bench") == "split") add_split(record, ordered);
  return true;
}

}  // namespace convoy::cli
