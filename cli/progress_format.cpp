#include "cli/progress_format.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace convoy::cli {
namespace {

constexpr double kFade = 0.9;  // of the recent rate, a step
constexpr int kSmallestBar = 8;
constexpr int kLargestBar = 30;

}  // namespace

std::string grouped(std::int64_t number) {
  std::string digits = std::to_string(std::abs(number));
  std::string text = number < 0 ? "-" : "";
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

std::string duration(double seconds) {
  auto whole = static_cast<std::int64_t>(std::llround(seconds));
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  if (whole < 86400) return fmt::format("{} h {:02} min", whole / 3600, whole % 3600 / 60);
  return fmt::format("{} d {:02} h", whole / 86400, whole % 86400 / 3600);
}

std::string rate(double per_second) {
  if (per_second >= 100) return fmt::format("{:.0f}", per_second);
  return fmt::format("{:#.3g}", per_second);
}

std::string percent(double fraction) {
  return fmt::format("{:.2f} %", 100 * fraction);
}

void Pace::add(const StepEvent& event) {
  elapsed_ += event.seconds;
  if (!warm_) {
    warm_ = true;
    return;
  }
  ++steps_;
  auto images = static_cast<double>(event.images);
  images_ += images;
  seconds_ += event.seconds;
  wait_ += event.wait_seconds;
  recent_images_ = kFade * recent_images_ + images;
  recent_seconds_ = kFade * recent_seconds_ + event.seconds;
}

double Pace::seconds_for(std::int64_t steps) const {
  return steps_ > 0 ? seconds_ / static_cast<double>(steps_) * static_cast<double>(steps) : 0;
}

std::string standing_line(const Standing& standing, const Pace& pace) {
  std::int64_t share = 100 * standing.step / std::max<std::int64_t>(standing.steps_per_epoch, 1);
  std::string line =
      fmt::format("epoch {}/{}  {}/{}  {} %  loss {:.4f}", standing.epoch, standing.epochs,
                  standing.step, standing.steps_per_epoch, share, standing.loss);
  if (pace.rate() > 0) {
    line += fmt::format("  {} images/s ({})", rate(pace.recent_rate()), rate(pace.rate()));
  }
  line += fmt::format("  lr {:.4g}", standing.lr);
  if (pace.rate() > 0) line += fmt::format("  data wait {:.0f} %", 100 * pace.wait_share());
  double left = pace.seconds_for(standing.steps_left);
  if (left > 0) line += fmt::format("  {} left", duration(left));
  return line;
}

std::string bar_line(const Standing& standing, const std::string& line, int columns) {
  int room = columns - 1 - static_cast<int>(line.size()) - 3;  // brackets and a space
  if (room < kSmallestBar)
    return line.substr(0, static_cast<std::size_t>(std::max(columns - 1, 0)));
  auto width = static_cast<std::size_t>(std::min(room, kLargestBar));
  double share = static_cast<double>(standing.step) /
                 static_cast<double>(std::max<std::int64_t>(standing.steps_per_epoch, 1));
  auto full = static_cast<std::size_t>(std::clamp(share, 0.0, 1.0) * static_cast<double>(width));
  return "[" + std::string(full, '#') + std::string(width - full, '.') + "] " + line;
}

namespace {

// "2 x cpu:0" where processes have devices of the same name.
std::string workers_text(const RunInfo& info) {
  std::map<std::pair<std::string, std::string>, int> kinds;
  for (std::size_t i = 0; i < info.devices.size(); ++i) {
    ++kinds[{info.devices[i], i < info.device_texts.size() ? info.device_texts[i] : ""}];
  }
  std::string text;
  for (const auto& [kind, count] : kinds) {
    text += ", " + (count > 1 ? fmt::format("{} x ", count) : "") + kind.first;
    if (!kind.second.empty()) text += " (" + kind.second + ")";
  }
  if (info.world < 2) return text;
  if (info.stages == 1) {
    text += fmt::format(", {} replicas over {}", info.replicas, info.comm);
  } else {
    if (info.replicas > 1) text += fmt::format(", {} replicas", info.replicas);
    text += fmt::format(", {} stages ({}) over {}, cut at {}", info.stages, info.schedule,
                        info.comm, info.cut);
  }
  if (info.running_statistics.empty() || info.bn == "frozen") return text;
  return text + ", running statistics of " + info.running_statistics;
}

}  // namespace

std::string run_text(const RunInfo& info, const std::string& data) {
  std::string text = fmt::format("{}, {} parameters, batch norm {}", info.model,
                                 grouped(info.parameters), info.bn);
  text += workers_text(info);
  // Rows of numbers have no classes.
  if (info.class_names.empty())
    return text + fmt::format(", {}: {} rows", data, grouped(info.train_images));
  return text + fmt::format(", {}: {} images of {} px, {} classes", data,
                            grouped(info.train_images), info.image_size, info.classes);
}

}  // namespace convoy::cli
