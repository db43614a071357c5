// `bench`: measurements of the library in bench/, as a line of JSON or a few of text.
#include <cstdio>

#include "bench/data.h"
#include "bench/step.h"
#include "cli/agreement.h"
#include "cli/check_settings.h"
#include "cli/commands.h"
#include "cli/flags.h"
#include "cli/job_group.h"
#include "cli/json_lines.h"
#include "cli/progress_format.h"
#include "cli/run_setup.h"
#include "cli/setup.h"
#include "engine/train/setup.h"
#include "kernels/base/error.h"

namespace convoy::cli {
namespace {

constexpr std::int64_t kRepeats = 3;

std::string settings_text(const Settings& settings) {
  return fmt::format("{}, batch {}, {} px", settings.model, settings.batch,
                     settings.image_size.value_or(0));
}

/// The line of `bench NAME --json`: the settings of `names` and what was measured, else `texts`.
void print_result(const Options& options, const char* name, const std::vector<std::string>& names,
                  const std::vector<JsonMember>& measured, const std::vector<std::string>& texts) {
  if (!options.json) {
    for (const std::string& text : texts) print_line(text);
    return;
  }
  JsonObject line{{"bench", name}};
  echo_settings(options, names, line);
  for (const JsonMember& member : measured) line.add_raw(member.key, member.json);
  print_line(line.text());
}

std::string replicas_text(const Settings& settings, const StepBenchResult& result) {
  std::string text =
      fmt::format("{}, {} threads", settings_text(settings), settings.threads.value_or(0));
  if (result.replicas == 1) return text;
  return text + fmt::format(", {} replicas: {} images/s each, {} of the all-reduce hidden",
                            result.replicas, rate(result.images_per_s_per_replica),
                            percent(result.overlap_share));
}

void no_progress(std::int64_t, std::int64_t) {}

JsonObject op_seconds_json(const StepBenchResult& result) {
  JsonObject object;
  for (const auto& [name, seconds] : result.op_seconds) object.add(name, seconds);
  return object;
}

// The summary, and a line for each class of op: its time of a step and its share.
std::vector<std::string> step_texts(const Settings& settings, const StepBenchResult& result) {
  std::vector<std::string> texts = {
      replicas_text(settings, result),
      fmt::format("{} images/s (best {}), {} of the peak, {:.0f} MB", rate(result.images_per_s),
                  rate(result.best), percent(result.share_of_peak), result.peak_rss_mb),
      fmt::format("{} allocations in steady steps, {:.1f} stalls a step", result.allocations,
                  result.host_stalls)};
  double all = 0;
  for (const auto& entry : result.op_seconds) all += entry.second;
  for (const auto& [name, seconds] : result.op_seconds) {
    texts.push_back(
        fmt::format("  {:<22} {:>10.3f} ms {:>6}", name, seconds * 1000, percent(seconds / all)));
  }
  return texts;
}

void print_step(const Options& options, const StepBenchResult& result) {
  print_result(options, "step", {"model", "batch", "image-size", "threads"},
               {{"images_per_s", result.images_per_s},
                {"best", result.best},
                {"share_of_peak", result.share_of_peak},
                {"peak_flops", result.peak_flops},
                {"peak_rss_mb", result.peak_rss_mb},
                {"device_peak_mb", result.device_peak_mb},
                {"seconds", result.seconds},
                {"replicas", result.replicas},
                {"images_per_s_per_replica", result.images_per_s_per_replica},
                {"all_reduce_s", result.all_reduce_seconds},
                {"exposed_s", result.exposed_seconds},
                {"overlap_share", result.overlap_share},
                {"op_seconds", op_seconds_json(result)},
                {"allocations", result.allocations},
                {"host_stalls", result.host_stalls}},
               step_texts(options.settings, result));
}

// Every process runs this; the leading one alone shows.
int bench_step_in(Options& options, const JobGroup& processes) {
  check_settings(options);
  if (processes.group()) {
    check_equal_facts(processes.group()->processes(),
                      common_facts(options.settings, settings_json(options)));
  }
  Settings& settings = options.settings;
  settings.stages = "1";  // what a variable says of them is not for this command
  settings.image_size = settings.image_size.value_or(kImageSize);
  prepare_workers(settings, processes.group());
  const int sharing = workers_on_these_cores(Ranks(processes.group()));
  if (processes.leads()) {
    print_warnings(device_warnings(settings, sharing));
    print_notes(options.notes);
  }
  const StepBenchResult result =
      bench_step({settings, options.repeats.value_or(kRepeats), processes.group()}, no_progress);
  if (processes.leads()) print_step(options, result);
  return 0;
}

void print_data(const Options& options, const DataBenchResult& result) {
  const Settings& settings = options.settings;
  print_result(options, "data", {"data", "batch", "loader-threads"},
               {{"images_per_s", result.images_per_s},
                {"images", result.images},
                {"seconds", result.seconds},
                {"decoder", result.decoder}},
               {fmt::format("{}, {} loader threads: {} images/s ({} images in {})", settings.data,
                            settings.loader_threads, rate(result.images_per_s),
                            grouped(result.images), duration(result.seconds))});
}

}  // namespace

int run_bench_step(Options& options) {
  JobGroup processes(options);
  return processes.run([&] { return bench_step_in(options, processes); });
}

int run_bench_data(Options& options) {
  check_settings(options);
  print_notes(options.notes);
  print_data(options,
             bench_data(options.settings, options.repeats.value_or(kRepeats), no_progress));
  return 0;
}

}  // namespace convoy::cli
