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
  all.settings.replicas = info.replicas;
  all.settings.stages = std::to_string(info.stages);
  if (!info.cut.empty()) all.settings.cut = info.cut;
  return all;
}

std::vector<JsonObject> links_json(const std::vector<LinkReport>& links) {
  std::vector<JsonObject> all;
  for (const LinkReport& link : links) {
    all.push_back({{"from", link.from},
                   {"to", link.to},
                   {"latency_s", link.latency_s},
                   {"bytes_per_s", link.bytes_per_s}});
  }
  return all;
}

}  // namespace

std::string run_line(const Options& options, const RunInfo& info, const Versions& versions) {
  JsonObject line{{"type", "run"}};
  echo_settings(resolved(options, info), line);
  line.add("parameters", info.parameters)
      .add("device_names", info.device_texts)
      .add("worker_devices", info.devices)
      .add("worker_threads", info.threads)
      .add("links", links_json(info.links))
      .add("world", info.world)
      .add("backend", info.comm)
      .add("hosts", info.hosts)
      .add("running_statistics", info.running_statistics)
      .add("train_images", info.train_images)
      .add("val_images", info.val_images)
      .add("steps_per_epoch", info.steps_per_epoch)
      .add("total_steps", info.total_steps)
      .add("start_step", info.start_step)
      .add("class_names", info.class_names)
      .add("versions", json_of(versions));
  return line.text();
}

std::string step_line(const StepEvent& event) {
  double rate = event.seconds > 0 ? static_cast<double>(event.images) / event.seconds : 0;
  JsonObject line{{"type", "step"},       {"step", event.step},
                  {"epoch", event.epoch}, {"loss", event.loss},
                  {"lr", event.lr},       {"images", event.images},
                  {"images_per_s", rate}, {"grad_norm", event.grad_norm}};
  return line.text();
}

std::string eval_line(const EvalEvent& event) {
  JsonObject line{{"type", "eval"},     {"epoch", event.epoch}, {"loss", event.loss},
                  {"top1", event.top1}, {"top5", event.top5},   {"images", event.images}};
  return line.text();
}

std::string end_line(const EndEvent& event) {
  JsonObject line{{"type", "end"},
                  {"steps", event.steps},
                  {"seconds", event.seconds},
                  {"weights_hash", event.weights_hash}};
  return line.text();
}

JsonObject json_of(const Versions& versions) {
  JsonObject object;
  for (const auto& [name, version] : versions) object.add(name, version);
  return object;
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
