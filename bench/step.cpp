#include "bench/step.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>

#include "bench/median.h"
#include "engine/autograd/backward.h"
#include "engine/nn/layers.h"
#include "engine/optim/optimizer.h"
#include "engine/train/trainer.h"
#include "kernels/base/context.h"
#include "kernels/base/error.h"
#include "models/models.h"

namespace convoy {
namespace {

HostBatch made_up_batch(const Network& network, std::int64_t images, std::int64_t image_size) {
  HostBatch batch;
  batch.images = batch.batch_images = images;
  batch.shape = network.takes_rows() ? Shape{images, network.in()}
                                     : Shape{images, network.in(), image_size, image_size};
  const std::vector<double> values = RandomStream(0, "bench/x").normal(batch.shape.count());
  batch.x.assign(values.begin(), values.end());
  if (network.takes_rows()) {
    batch.target_width = network.out();
    const std::vector<double> targets = RandomStream(0, "bench/y").normal(images * network.out());
    batch.targets.assign(targets.begin(), targets.end());
    return batch;
  }
  for (std::int64_t i = 0; i < images; ++i) batch.labels.push_back(i % network.out());
  return batch;
}

// Forward, input gradient (not of the first layer) and weight gradient; a multiply-add counts two.
double flops_of_step(const Network& network, std::int64_t images, std::int64_t image_size) {
  const std::vector<Shape> outputs = network.output_shapes(images, image_size);
  double flops = 0;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const Network::Layer& layer = network.layers()[i];
    const auto inputs = network.input_shapes(i, outputs, images, image_size);
    const double forward = 2.0 * static_cast<double>(layer.module->multiply_adds(inputs));
    const bool first = layer.inputs.front() == Network::kInput;
    flops += forward * (first ? 2 : 3);
  }
  return flops;
}

double peak_rss_mb() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

TrainingJob job_of(const Settings& given, std::int64_t image_size) {
  TrainingJob job;
  job.settings = given;
  job.settings.optimizer = "sgd";
  job.settings.lr = 0.001;
  job.settings.weight_decay = 0;
  job.image_size = image_size;
  job.network = make_model(given.model, given.classes.value_or(1000), given.seed);
  return job;
}

}  // namespace

StepBenchResult bench_step(const StepBenchOptions& options,
                           const std::function<void(std::int64_t, std::int64_t)>& progress) {
  using Clock = std::chrono::steady_clock;
  const std::int64_t images = options.settings.batch;
  const std::int64_t image_size = options.settings.image_size.value_or(kImageSize);
  const TrainingJob job = job_of(options.settings, image_size);
  check_batch_norm(*job.network, job.settings.bn, images, image_size);
  std::unique_ptr<StepRunner> runner = make_runner(job);
  DeviceContext& device = context(job.settings.devices[0]);
  const HostBatch batch = made_up_batch(*job.network, images, image_size);

  StepBenchResult result;
  for (std::int64_t step = 0; step <= options.steps; ++step) {
    const Clock::time_point start = Clock::now();
    runner->begin({.step = step + 1, .images = images, .lr = 0.001});
    runner->add_batch(batch);
    runner->finish();
    device.default_stream().synchronize();
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    if (step > 0) result.seconds.push_back(seconds);
    progress(step, options.steps);
  }
  result.peak_rss_mb = peak_rss_mb();
  result.device_peak_mb = static_cast<double>(device.memory().statistics().peak_in_use) / 1048576;

  const double middle = median(result.seconds);
  result.images_per_s = static_cast<double>(images) / middle;
  result.best =
      static_cast<double>(images) / *std::min_element(result.seconds.begin(), result.seconds.end());
  result.peak_flops = device.measure_peak_flops();
  if (result.peak_flops > 0) {
    result.share_of_peak =
        flops_of_step(*job.network, images, image_size) / middle / result.peak_flops;
  }
  return result;
}

}  // namespace convoy
