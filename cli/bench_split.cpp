// `bench split`: what splitting a network does here, in lines of JSON or a table.
#include <fmt/format.h>

#include <chrono>
#include <cstdio>

#include "bench/split.h"
#include "bench/split_names.h"
#include "cli/agreement.h"
#include "cli/check_settings.h"
#include "cli/commands.h"
#include "cli/flags.h"
#include "cli/job_group.h"
#include "cli/json_lines.h"
#include "cli/progress_format.h"
#include "cli/run_setup.h"
#include "cli/setup.h"
#include "cli/terminal.h"
#include "engine/train/setup.h"

namespace convoy::cli {
namespace {

constexpr std::int64_t kRepeats = 3;

/// On stderr: at a terminal a line that changes, else one every ten seconds.
class Progress {
 public:
  explicit Progress(bool shows) : shows_(shows), paints_(is_terminal(kStderr)) {}
  ~Progress() {
    if (shows_ && paints_) std::fprintf(stderr, "\r\033[K");
  }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void say(const std::string& text) {
    const Clock::time_point now = Clock::now();
    if (!shows_ || (!paints_ && now < next_)) return;
    std::fprintf(stderr, paints_ ? "\rconvoy: %s\033[K" : "convoy: %s\n", text.c_str());
    std::fflush(stderr);
    next_ = now + kInterval;
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr int kStderr = 2;
  static constexpr std::chrono::seconds kInterval{10};
  const bool shows_;
  const bool paints_;
  Clock::time_point next_;
};

std::string optional_text(const std::optional<double>& value, const char* format) {
  return value ? fmt::format(fmt::runtime(format), *value) : std::string("-");
}

void print_settings_json(const Options& options, int workers) {
  JsonObject line{{"bench", "split"}};
  echo_settings(options,
                {"model", "classes", "image-size", "batch", "precision", "bn", "loss", "cut",
                 "devices", "threads", "splits", "repeats"},
                line);
  line.add("workers", workers);
  print_line(line.text());
}

void print_row_json(const SplitRow& row) {
  const JsonObject line{{"bench", "split"},
                        {"mode", row.mode},
                        {"split", row.split},
                        {"micro_batches", row.micro_batches},
                        {"schedule", row.schedule},
                        {"replicas", row.replicas},
                        {"stages", row.stages},
                        {"cut", join_names(row.cut)},
                        {"shares", row.shares},
                        {"mean_s", row.mean_s},
                        {"std_s", row.std_s},
                        {"median_s", row.median_s},
                        {"seconds", row.seconds},
                        {"images_per_s", row.images_per_s},
                        {"speed_up", row.speed_up},
                        {"speed_up_same_split", row.speed_up_same_split},
                        {"ceiling", row.ceiling},
                        {"share_of_ceiling", row.share_of_ceiling},
                        {"bubble", row.bubble},
                        {"bubble_predicted", row.bubble_predicted},
                        {"transfer_share", row.transfer_share},
                        {"host_share", row.host_share}};
  print_line(line.text());
}

void print_verdict_json(const SplitVerdict& verdict) {
  const JsonObject line{{"bench", "split"},
                        {"claim", verdict.claim},
                        {"verdict", verdict.holds ? "holds" : "does not hold here"},
                        {"ratio", verdict.ratio},
                        {"row", verdict.row},
                        {"against", verdict.against},
                        {"transfer_share", verdict.transfer_share}};
  print_line(line.text());
}

std::string layout_text(const SplitRow& row) {
  if (row.mode == "single") return "1 device";
  if (row.stages == 1) return fmt::format("{} replicas", row.replicas);
  std::string text = fmt::format("{} at {}", row.schedule, join_names(row.cut));
  if (row.replicas > 1) text = fmt::format("{} x ", row.replicas) + text;
  return text;
}

void print_row(const SplitRow& row) {
  const auto share = [](const std::optional<double>& value) {
    return value ? fmt::format("{:.1f} %", 100 * *value) : std::string("-");
  };
  print_line(
      fmt::format("{:<15}{:>5}{:>9.3f} s{:>8.3f}{:>10}{:>8.2f}x{:>9}{:>9}{:>9}{:>9}{:>9}  {}",
                  row.mode, row.split, row.mean_s, row.std_s, rate(row.images_per_s), row.speed_up,
                  optional_text(row.speed_up_same_split, "{:.2f}x"),
                  optional_text(row.ceiling, "{:.2f}x"), share(row.share_of_ceiling),
                  share(row.bubble), share(row.bubble_predicted), layout_text(row)));
}

void print_table(const Options& options, const std::vector<SplitRow>& rows) {
  const Settings& settings = options.settings;
  print_line(fmt::format("{}, batch {}, {} px, {}, batch norm {}, {} thread(s) a worker",
                         settings.model, settings.batch, settings.image_size.value_or(0),
                         settings.precision, settings.bn, settings.threads.value_or(0)));
  print_line(fmt::format("{:<15}{:>5}{:>11}{:>8}{:>10}{:>9}{:>9}{:>9}{:>9}{:>9}{:>9}  {}", "mode",
                         "split", "mean", "+-", "images/s", "speed-up", "of equal", "ceiling",
                         "reached", "bubble", "forecast", "layout"));
  for (const SplitRow& row : rows) print_row(row);
}

std::string verdict_text(const SplitVerdict& verdict) {
  std::string text = fmt::format("{}: {}. {} is {:.2f} times as fast as {}", verdict.claim,
                                 verdict.holds ? "holds" : "does not hold here", verdict.row,
                                 verdict.ratio, verdict.against);
  if (verdict.transfer_share)
    text += fmt::format("; transfers {}", percent(*verdict.transfer_share));
  return text;
}

void print_all(const Options& options, const std::vector<SplitRow>& rows, int workers) {
  if (options.json) {
    print_settings_json(options, workers);
    for (const SplitRow& row : rows) print_row_json(row);
    for (const SplitVerdict& verdict : verdicts(rows)) print_verdict_json(verdict);
    return;
  }
  print_table(options, rows);
  for (const SplitVerdict& verdict : verdicts(rows)) print_line(verdict_text(verdict));
}

int bench_split_in(Options& options, const JobGroup& processes) {
  if (options.settings.cut != "auto") {
    options.settings.stages = std::to_string(split_names(options.settings.cut).size() + 1);
  }
  check_settings(options);
  if (processes.group()) {
    check_equal_facts(processes.group()->processes(),
                      common_facts(options.settings, settings_json(options)));
  }
  Settings& settings = options.settings;
  settings.image_size = settings.image_size.value_or(kImageSize);
  settings.classes = settings.classes.value_or(1000);
  options.repeats = options.repeats.value_or(kRepeats);
  prepare_workers(settings, processes.group());
  const int sharing = workers_on_these_cores(Ranks(processes.group()));
  if (processes.leads()) {
    print_warnings(device_warnings(settings, sharing));
    print_notes(options.notes);
  }
  Progress progress(processes.leads());
  const auto note = [&](const std::string& text) {
    if (processes.leads()) print_notes({text});
  };
  const auto rows =
      bench_split({settings, options.splits, *options.repeats, processes.group(), note},
                  [&](const std::string& text) { progress.say("bench split: " + text); });
  if (processes.leads()) print_all(options, rows, processes.workers());
  return 0;
}

}  // namespace

int run_bench_split(Options& options) {
  JobGroup processes(options);
  return processes.run([&] { return bench_split_in(options, processes); });
}

}  // namespace convoy::cli
