#include "tests/engine/train/training.h"

#include "engine/nn/layers.h"
#include "models/models.h"

namespace convoy::testing {
namespace {

std::shared_ptr<Network> tiny_network(std::uint64_t seed) {
  auto network = std::make_shared<Network>("tiny", 3, false, 3);
  network->add("conv1", std::make_shared<Conv2d>(3, 4, 3, Conv2dOptions{.padding = 1}, false));
  network->add("bn1", std::make_shared<BatchNorm2d>(4, true));
  network->add("conv2", std::make_shared<Conv2d>(4, 6, 3, Conv2dOptions{.stride = 2}, false));
  network->add("bn2", std::make_shared<BatchNorm2d>(6, true));
  network->add("pool", std::make_shared<GlobalAvgPool2d>());
  network->add("fc", std::make_shared<Linear>(6, 3));
  network->initialize(seed);
  return network;
}

}  // namespace

TrainingJob small_job(Settings settings, std::int64_t images) {
  TrainingJob job;
  settings.data = "synthetic:" + std::to_string(4 * images);
  settings.limit = images;
  if (!settings.threads) settings.threads = 1;
  const bool rows = settings.model == "toy" || settings.model == "line";
  if (!rows && !settings.classes) settings.classes = 3;
  if (!rows && !settings.image_size) settings.image_size = 32;
  job.settings = settings;
  job.make_network = [settings] {
    return make_model(settings.model, settings.classes.value_or(1), settings.seed);
  };
  job.network = job.make_network();
  job.data =
      rows ? open_rows(settings, job.network->in(), job.network->out()) : open_images(settings);
  job.image_size = image_size_of(settings);
  return job;
}

TrainingJob tiny_job(Settings settings, std::int64_t images) {
  settings.model = "resnet18";  // says that it takes images
  settings.image_size = 8;
  TrainingJob job = small_job(settings, images);
  job.make_network = [seed = settings.seed] { return tiny_network(seed); };
  job.network = job.make_network();
  return job;
}

TrainingOutcome run_replicas(TrainingJob job, int replicas, Recorder& recorder,
                             const char* device) {
  GroupOptions options;
  options.backend = "thread";
  options.timeout = 30;
  options.local_workers = replicas;
  options.on_failure = [](const Error&) {};
  const std::unique_ptr<Group> group = Group::make(World(), options);
  job.group = group.get();
  job.settings.devices.clear();
  for (int i = 0; i < replicas; ++i) {
    job.settings.devices.push_back(fmt::format("{}:{}", device, i));
  }
  return train(job, {&recorder}, StopRequest());
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
