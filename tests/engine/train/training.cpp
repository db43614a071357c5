#include "tests/engine/train/training.h"

#include "models/models.h"

namespace convoy::testing {

TrainingJob small_job(Settings settings, std::int64_t images) {
  TrainingJob job;
  settings.data = "synthetic:" + std::to_string(4 * images);
  settings.limit = images;
  if (!settings.threads) settings.threads = 1;
  const bool rows = settings.model == "toy" || settings.model == "line";
  if (!rows && !settings.classes) settings.classes = 3;
  if (!rows && !settings.image_size) settings.image_size = 32;
  job.settings = settings;
  job.network = make_model(settings.model, settings.classes.value_or(1), settings.seed);
  job.data =
      rows ? open_rows(settings, job.network->in(), job.network->out()) : open_images(settings);
  job.image_size = image_size_of(settings);
  return job;
}

TrainingOutcome run(const TrainingJob& job, Recorder& recorder) {
  return train(job, {&recorder}, StopRequest());
}

std::vector<double> figures(const Recorder& recorder) {
  std::vector<double> values;
  for (const StepEvent& e : recorder.steps) {
    values.insert(values.end(),
                  {double(e.step), double(e.epoch), e.loss, e.lr, double(e.images), e.grad_norm});
  }
  for (const EvalEvent& e : recorder.evals) {
    values.insert(values.end(), {double(e.epoch), e.loss, e.top1, e.top5, double(e.images)});
  }
  return values;
}

}  // namespace convoy::testing
