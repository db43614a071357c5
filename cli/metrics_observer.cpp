#include "cli/metrics_observer.h"

#include <charconv>

#include "cli/flags.h"
#include "cli/json_lines.h"

namespace convoy::cli {
namespace {

/// The integer after `"key":` in a line that we wrote ourselves; empty if it is not there.
std::optional<std::int64_t> integer_of(const std::string& line, std::string_view key) {
  std::string pattern = "\"" + std::string(key) + "\":";
  std::size_t start = line.find(pattern);
  if (start == std::string::npos) return {};
  std::int64_t value = 0;
  const char* digits = line.data() + start + pattern.size();
  auto [stop, code] = std::from_chars(digits, line.data() + line.size(), value);
  if (code != std::errc()) return {};
  return value;
}

/// The options with what the run decided in place of what was left open.
Options resolved(const Options& options, const RunInfo& info) {
  Options all = options;
  all.settings.model = info.model;
  all.settings.classes = info.classes;
  all.settings.image_size = info.image_size;
  all.settings.bn = info.bn;
  return all;
}

}  // namespace

std::string run_line(const Options& options, const RunInfo& info, const Versions& versions) {
  JsonObject line;
  line.add("type", "run");
  echo_settings(resolved(options, info), line);
  line.add("parameters", info.parameters)
      .add("device_names", info.device_texts)
      .add("train_images", info.train_images)
      .add("val_images", info.val_images)
      .add("steps_per_epoch", info.steps_per_epoch)
      .add("total_steps", info.total_steps)
      .add("start_step", info.start_step)
      .add("class_names", info.class_names);
  JsonObject numbers;
  for (const auto& [name, version] : versions) numbers.add(name, version);
  return line.add("versions", numbers).text();
}

std::string step_line(const StepEvent& event) {
  double rate = event.seconds > 0 ? static_cast<double>(event.images) / event.seconds : 0;
  return JsonObject()
      .add("type", "step")
      .add("step", event.step)
      .add("epoch", event.epoch)
      .add("loss", event.loss)
      .add("lr", event.lr)
      .add("images", event.images)
      .add("images_per_s", rate)
      .add("grad_norm", event.grad_norm)
      .text();
}

std::string eval_line(const EvalEvent& event) {
  return JsonObject()
      .add("type", "eval")
      .add("epoch", event.epoch)
      .add("loss", event.loss)
      .add("top1", event.top1)
      .add("top5", event.top5)
      .add("images", event.images)
      .text();
}

std::string end_line(const EndEvent& event) {
  return JsonObject()
      .add("type", "end")
      .add("steps", event.steps)
      .add("seconds", event.seconds)
      .add("weights_hash", event.weights_hash)
      .text();
}

bool keep_line(const std::string& line, const RunInfo& info) {
  if (line.starts_with(R"({"type":"end")")) return false;
  if (line.starts_with(R"({"type":"eval")")) {
    auto epoch = integer_of(line, "epoch");
    return epoch && (!info.start_epoch || *epoch < *info.start_epoch);
  }
  if (!line.starts_with(R"({"type":"step")")) return true;
  auto step = integer_of(line, "step");
  return step && *step <= info.start_step;
}

MetricsObserver::MetricsObserver(Options options, Versions versions)
    : options_(std::move(options)), versions_(std::move(versions)) {
  if (options_.json) out_ = std::make_unique<LineFile>();
}

void MetricsObserver::on_run(const RunInfo& info) {
  const std::string& path = options_.settings.log;
  if (!path.empty() && info.start_step > 0) {
    log_ = std::make_unique<LineFile>(
        path, [&](const std::string& line) { return keep_line(line, info); });
  } else if (!path.empty()) {
    log_ = std::make_unique<LineFile>(path);
  }
  write(run_line(options_, info, versions_));
}

void MetricsObserver::write(const std::string& line) {
  if (log_) log_->write(line);
  if (out_) out_->write(line);
}

}  // namespace convoy::cli
