// `predict`: image files through a trained network, the five likeliest classes of each.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "cli/agreement.h"
#include "cli/check_settings.h"
#include "cli/commands.h"
#include "cli/job_group.h"
#include "cli/json_lines.h"
#include "cli/prediction.h"
#include "cli/progress_format.h"
#include "cli/run_setup.h"
#include "cli/setup.h"
#include "engine/data/decode_image.h"
#include "engine/data/order.h"
#include "engine/data/transform.h"
#include "engine/io/text.h"
#include "engine/train/defaults.h"
#include "engine/train/setup.h"
#include "kernels/base/error.h"
#include "models/models.h"

namespace convoy::cli {
namespace {

constexpr std::size_t kGuesses = 5;

/// Raw outputs, and whether they were computed in float64: that many digits are told.
struct Logits {
  std::vector<double> values;
  bool wide = false;
};

std::string text_of(const Logits& logits, const char* separator) {
  std::string text;
  for (double value : logits.values) {
    if (!text.empty()) text += separator;
    text += logits.wide ? to_json(value) : to_json(static_cast<float>(value));
  }
  return text;
}

std::string json_of(const std::string& path, const std::vector<Guess>& guesses,
                    const Logits& logits, bool with_logits) {
  std::vector<JsonObject> top;
  for (const Guess& guess : guesses) {
    top.push_back({{"class", guess.label}, {"name", guess.name}, {"p", guess.p}});
  }
  JsonObject line{{"image", path}, {"top", top}};
  if (with_logits) line.add_raw("logits", "[" + text_of(logits, ",") + "]");
  return line.text();
}

std::string text_of_image(const std::string& path, const std::vector<Guess>& guesses,
                          const Logits& logits, bool with_logits) {
  std::string text = printable(path);
  for (std::size_t i = 0; i < guesses.size(); ++i) {
    text +=
        fmt::format("\n{:>3}  {:>8}  {}", i + 1, percent(guesses[i].p), printable(guesses[i].name));
  }
  if (!with_logits) return text;
  return text + "\n  logits " + text_of(logits, " ");
}

// What the workers need of a network; its data are files that nobody has opened.
TrainingJob job_of(Options& options, const TrainedNetwork& trained, convoy::Group* group) {
  Settings& settings = options.settings;
  settings.model = trained.model;
  settings.classes = trained.classes;
  settings.image_size = trained.image_size;
  settings.threads = threads_per_worker(settings, group);
  if (!settings.micro_batch_size && !settings.micro_batches) settings.micro_batch_size = 1;
  TrainingJob job;
  job.settings = resolved_settings(settings, false);
  job.settings_json = settings_json(options);
  job.make_network = [model = trained.model, classes = trained.classes] {
    return make_model_without_values(model, classes);
  };
  job.network = job.make_network();
  job.group = group;
  job.image_size = trained.image_size;
  return job;
}

void check_equal_work(const Options& options, const TrainingJob& job, convoy::Group& group) {
  Facts facts = common_facts(job.settings, job.settings_json);
  facts.emplace_back("files", fmt::format("{}", fmt::join(options.operands, " ")));
  check_equal_facts(group.processes(), facts);
}

// One image has its outputs at once; several keep all stages of all replicas busy.
std::int64_t images_at_once(const Layout& layout) {
  return layout.stages() == 1 ? layout.replicas : 4 * layout.stages() * layout.replicas;
}

// Reads images for the first stages of this process.
class ImageBatches {
 public:
  ImageBatches(const Options& options, const TrainedNetwork& trained, const Ranks& ranks)
      : paths_(options.operands),
        max_pixels_(options.settings.max_pixels),
        ranks_(ranks),
        side_(trained.image_size),
        transform_({static_cast<int>(trained.image_size), trained.normalisation(),
                    ResizeRule::centre_crop, AugmentRule::none}) {}

  /// This process's part of images `first` to `first` + `count` - 1.
  HostBatch read(std::int64_t first, std::int64_t count) {
    HostBatch batch;
    batch.batch_images = count;
    batch.shares = shares_of(count, ranks_.replicas());
    batch.image_replicas = ranks_.image_replicas();
    batch.label_replicas = {0, 0};
    batch.set_starts();
    for (int replica = batch.image_replicas.first; replica < batch.image_replicas.end();
         ++replica) {
      const Share share = share_of(count, ranks_.replicas(), replica);
      for (std::int64_t i = 0; i < share.count; ++i) add(batch, paths_[first + share.begin + i]);
    }
    batch.shape = {batch.images, kChannels, side_, side_};
    return batch;
  }
  /// Images so far whose rotation was ignored.
  std::int64_t rotated() const { return rotated_; }

 private:
  void add(HostBatch& batch, const std::string& path) {
    const Image image = read_image_file(path, max_pixels_);
    if (image.rotated) ++rotated_;
    batch.x.resize(static_cast<std::size_t>((batch.images + 1) * transform_.count()));
    transform_.eval(image, batch.x.data() + batch.images * transform_.count());
    ++batch.images;
  }

  const std::vector<std::string>& paths_;
  const std::int64_t max_pixels_;
  const Ranks& ranks_;
  const std::int64_t side_;
  const Transform transform_;
  std::int64_t rotated_ = 0;
};

void print_outputs(const Options& options, const TrainedNetwork& trained, std::int64_t first,
                   const Outputs& outputs) {
  const std::vector<std::string> names = trained.class_names();
  const auto rows = static_cast<std::int64_t>(outputs.values.size()) / outputs.width;
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto begin = outputs.values.begin() + row * outputs.width;
    const Logits logits{{begin, begin + outputs.width}, options.settings.precision == "fp64"};
    const std::vector<Guess> guesses = top_guesses(logits.values, names, kGuesses);
    auto to_line = options.json ? json_of : text_of_image;
    print_line(to_line(options.operands[first + row], guesses, logits, options.logits));
  }
}

/// As training tells it of a folder.
std::string rotation_note(std::int64_t images) {
  return fmt::format("{} image{} a rotation (EXIF); pixels are used as stored", images,
                     images == 1 ? " carries" : "s carry");
}

// Every process runs this; the leading one alone reads the weights and prints.
int predict_in(Options& options, const JobGroup& processes) {
  check_settings(options);
  const Layout layout = layout_of(options.settings, processes.workers());
  const Ranks ranks(processes.group(), layout);
  TrainedNetwork trained = read_trained(options, kImageSize, ranks);
  CONVOY_CHECK(!takes_rows(trained.model), "predict: {} takes rows of numbers, not images",
               trained.model);
  const std::int64_t at_once = images_at_once(layout);
  options.settings.batch = at_once;
  TrainingJob job = job_of(options, trained, processes.group());
  if (processes.group()) check_equal_work(options, job, *processes.group());
  settle_cuts(options, job);
  const std::unique_ptr<StepRunner> runner = make_runner(job);
  runner->load({std::move(trained.state), {}, 0});
  ImageBatches batches(options, trained, ranks);
  const auto images = std::ssize(options.operands);
  for (std::int64_t first = 0; first < images; first += at_once) {
    ranks.enter(Activity::evaluating);
    const HostBatch batch = batches.read(first, std::min(at_once, images - first));
    print_outputs(options, trained, first, runner->predict(batch));
  }
  const std::vector<std::int64_t> counts = ranks.all_numbers({batches.rotated()});
  const std::int64_t rotated = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
  const auto warnings = all_device_warnings(options.settings, ranks);
  if (!processes.leads()) return 0;
  if (rotated > 0) trained.notes.push_back(rotation_note(rotated));
  print_warnings({warnings.begin(), warnings.end()});  // last: an error is to be the only line
  print_notes(options.notes);
  print_notes(trained.notes);
  return 0;
}

}  // namespace

int run_predict(Options& options) {
  CONVOY_CHECK(!options.operands.empty(), "predict needs an image: convoy predict FILE...");
  JobGroup processes(options);
  return processes.run([&] { return predict_in(options, processes); });
}

}  // namespace convoy::cli
