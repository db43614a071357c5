#include "engine/train/evaluate.h"

#include <limits>

#include "engine/train/batch_source.h"
#include "engine/train/setup.h"
#include "kernels/base/error.h"

namespace convoy {

LoaderOptions loader_options(const Settings& settings, std::int64_t image_size, bool training) {
  LoaderOptions options;
  options.batch = settings.batch;
  options.seed = settings.seed;
  options.threads = settings.loader_threads;
  options.train = training;
  options.image_size = static_cast<int>(image_size);
  options.bad_images = settings.bad_images == "skip" ? BadImages::skip : BadImages::stop;
  return options;
}

std::unique_ptr<Loader> make_loader(const TrainingJob& job, std::shared_ptr<const Dataset> dataset,
                                    bool training) {
  LoaderOptions options = loader_options(job.settings, job.image_size, training);
  const Ranks ranks = ranks_of(job);
  options.replicas = ranks.replicas();
  options.images = ranks.image_replicas();
  options.labels = ranks.label_replicas();
  options.normalisation = job.normalisation.value_or(job.data.train->normalisation());
  if (job.settings.loss == "mse" && dataset->kind() == SampleKind::images) {
    options.one_hot = job.network->out();
  }
  return std::make_unique<Loader>(std::move(dataset), options);
}

void tell_skipped(const std::vector<SkippedImage>& skipped, std::int64_t images,
                  const std::vector<Observer*>& observers) {
  if (skipped.empty()) return;
  const std::string text = describe_skipped(skipped, images);
  for (Observer* observer : observers) observer->on_warning(text);
}

std::optional<EvalEvent> evaluate(const TrainingJob& job, StepRunner& runner, std::int64_t epoch,
                                  const std::function<bool()>& stopping,
                                  const std::vector<Observer*>& observers) {
  const Ranks ranks = ranks_of(job);
  const bool skips = job.settings.bad_images == "skip";
  const std::int64_t total = job.data.validation->size();
  std::unique_ptr<Loader> loader = make_loader(job, job.data.validation, false);
  loader->start_epoch(0);
  EvalSums sums;
  std::int64_t done = 0;
  std::vector<SkippedImage> skipped;
  while (std::optional<HostBatch> batch = loader->next()) {
    if (stopping()) return std::nullopt;
    ranks.enter(Activity::evaluating);
    if (skips) leave_out_everywhere(*batch, ranks);
    sums += runner.evaluate(*batch);
    done += batch->batch_images;
    skipped.insert(skipped.end(), batch->skipped.begin(), batch->skipped.end());
    for (Observer* observer : observers) observer->on_eval_progress(done, total);
    loader->recycle(std::move(*batch));
  }
  tell_skipped(ranks.all_skipped(skipped), total, observers);
  if (sums.images == 0) CONVOY_FAIL(data, "eval: no image of {} could be used", total);
  const auto images = static_cast<double>(sums.images);
  const bool classes = job.data.validation->kind() == SampleKind::images;
  const double none = std::numeric_limits<double>::quiet_NaN();
  return EvalEvent{epoch, sums.loss / images,
                   classes ? static_cast<double>(sums.top1) / images : none,
                   classes ? static_cast<double>(sums.top5) / images : none, sums.images};
}

}  // namespace convoy
