// `bench`: measurements of the library in bench/, as a line of JSON or a few of text.
#include <cstdio>

#include "bench/data.h"
#include "bench/step.h"
#include "cli/check_settings.h"
#include "cli/commands.h"
#include "cli/flags.h"
#include "cli/json_lines.h"
#include "cli/progress_format.h"
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

void print_step(const Options& options, const StepBenchResult& result) {
  print_result(
      options, "step", {"model", "batch", "image-size", "threads"},
      {{"images_per_s", result.images_per_s},
       {"best", result.best},
       {"share_of_peak", result.share_of_peak},
       {"peak_flops", result.peak_flops},
       {"peak_rss_mb", result.peak_rss_mb},
       {"device_peak_mb", result.device_peak_mb},
       {"seconds", result.seconds}},
      {fmt::format("{}, {} threads", settings_text(options.settings),
                   options.settings.threads.value_or(0)),
       fmt::format("{} images/s (best {}), {} of the peak, {:.0f} MB", rate(result.images_per_s),
                   rate(result.best), percent(result.share_of_peak), result.peak_rss_mb)});
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

void no_progress(std::int64_t, std::int64_t) {}

}  // namespace

int run_bench_step(Options& options) {
  check_settings(options);
  Settings& settings = options.settings;
  settings.image_size = settings.image_size.value_or(kImageSize);
  settings.threads = prepare_device(settings).threads();
  print_warnings(device_warnings(settings));
  print_notes(options.notes);
  print_step(options, bench_step({settings, options.repeats.value_or(kRepeats)}, no_progress));
  return 0;
}

int run_bench_data(Options& options) {
  check_settings(options);
  print_notes(options.notes);
  print_data(options,
             bench_data(options.settings, options.repeats.value_or(kRepeats), no_progress));
  return 0;
}

}  // namespace convoy::cli
