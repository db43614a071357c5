// `bench`: measurements of the library in bench/, as a line of JSON or a few of text.
#include <cstdio>

#include "bench/data.h"
#include "bench/step.h"
#include "cli/check_settings.h"
#include "cli/commands.h"
#include "cli/json_lines.h"
#include "cli/progress_format.h"
#include "cli/setup.h"
#include "engine/train/setup.h"
#include "kernels/base/error.h"

namespace convoy::cli {
namespace {

std::string settings_text(const Settings& settings) {
  return fmt::format("{}, batch {}, {} px", settings.model, settings.batch,
                     settings.image_size.value_or(0));
}

void print_step(const Options& options, const StepBenchResult& result) {
  const Settings& settings = options.settings;
  if (options.json) {
    print_line(JsonObject()
                   .add("bench", "step")
                   .add("model", settings.model)
                   .add("batch", settings.batch)
                   .add("image-size", settings.image_size.value_or(0))
                   .add("threads", settings.threads.value_or(0))
                   .add("images_per_s", result.images_per_s)
                   .add("best", result.best)
                   .add("share_of_peak", result.share_of_peak)
                   .add("peak_flops", result.peak_flops)
                   .add("peak_rss_mb", result.peak_rss_mb)
                   .add("device_peak_mb", result.device_peak_mb)
                   .add("seconds", result.seconds)
                   .text());
    return;
  }
  print_line(fmt::format("{}, {} threads", settings_text(settings), settings.threads.value_or(0)));
  print_line(fmt::format("{} images/s (best {}), {} of the peak, {:.0f} MB",
                         rate(result.images_per_s), rate(result.best),
                         percent(result.share_of_peak), result.peak_rss_mb));
}

}  // namespace

int run_bench_step(Options& options) {
  check_settings(options);
  Settings& settings = options.settings;
  settings.image_size = settings.image_size.value_or(kImageSize);
  settings.threads = prepare_device(settings).threads();
  print_warnings(device_warnings(settings));
  print_notes(options.notes);
  print_step(options, bench_step({settings, options.repeats}, [](std::int64_t, std::int64_t) {}));
  return 0;
}

int run_bench_data(Options& options) {
  check_settings(options);
  const Settings& settings = options.settings;
  print_notes(options.notes);
  DataBenchResult result = bench_data(settings, options.repeats, [](std::int64_t, std::int64_t) {});
  if (options.json) {
    print_line(JsonObject()
                   .add("bench", "data")
                   .add("data", settings.data)
                   .add("batch", settings.batch)
                   .add("loader-threads", settings.loader_threads)
                   .add("images_per_s", result.images_per_s)
                   .add("images", result.images)
                   .add("seconds", result.seconds)
                   .add("decoder", result.decoder)
                   .text());
  } else {
    print_line(fmt::format("{}, {} loader threads: {} images/s ({} images in {})", settings.data,
                           settings.loader_threads, rate(result.images_per_s),
                           grouped(result.images), duration(result.seconds)));
  }
  return 0;
}

}  // namespace convoy::cli
