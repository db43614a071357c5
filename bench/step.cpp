#include "bench/step.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <thread>

#include "bench/made_up.h"
#include "bench/median.h"
#include "comm/host_values.h"
#include "engine/autograd/backward.h"
#include "engine/data/order.h"
#include "engine/nn/layers.h"
#include "engine/optim/optimizer.h"
#include "engine/train/batch_feed.h"
#include "engine/train/ranks.h"
#include "engine/train/setup.h"
#include "engine/train/trainer.h"
#include "kernels/base/context.h"
#include "kernels/base/error.h"
#include "models/models.h"

namespace convoy {
namespace {

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

TrainingJob job_of(const StepBenchOptions& options, std::int64_t image_size) {
  TrainingJob job;
  job.settings = options.settings;
  job.group = options.group;
  job.settings.optimizer = "sgd";
  job.settings.lr = 0.001;
  job.settings.weight_decay = 0;
  job.image_size = image_size;
  job.make_network = [given = options.settings] {
    return make_model(given.model, given.classes.value_or(1000), given.seed);
  };
  job.network = job.make_network();
  return job;
}

// Of all workers, measured at the same time as they would compute.
double peak_of_all(const Settings& settings, const Ranks& ranks) {
  std::vector<double> peaks(settings.devices.size());
  ranks.barrier();
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < peaks.size(); ++i) {
    threads.emplace_back([&, i] { peaks[i] = context(settings.devices[i]).measure_peak_flops(); });
  }
  threads.clear();
  const double sum = std::accumulate(peaks.begin(), peaks.end(), 0.0);
  return ranks.group() ? sum_over(ranks.group()->processes(), sum) : sum;
}

// Medians and shares; `before`: what had been reduced when the measured steps began.
void sum_up(StepBenchResult& result, std::int64_t images, const ReduceSeconds& before,
            const ReduceSeconds& after) {
  const auto count = static_cast<double>(images);
  result.images_per_s = count / median(result.seconds);
  result.best = count / *std::min_element(result.seconds.begin(), result.seconds.end());
  result.images_per_s_per_replica = result.images_per_s / static_cast<double>(result.replicas);
  const auto steps = static_cast<double>(result.seconds.size());
  result.all_reduce_seconds = (after.all - before.all) / steps;
  result.exposed_seconds = (after.exposed - before.exposed) / steps;
  if (result.all_reduce_seconds > 0) {
    result.overlap_share = 1 - result.exposed_seconds / result.all_reduce_seconds;
  }
}

}  // namespace

StepBenchResult bench_step(const StepBenchOptions& options,
                           const std::function<void(std::int64_t, std::int64_t)>& progress) {
  using Clock = std::chrono::steady_clock;
  const std::int64_t images = options.settings.batch;
  const std::int64_t image_size = options.settings.image_size.value_or(kImageSize);
  const Ranks ranks(options.group);
  const TrainingJob job = job_of(options, image_size);
  const Division division = division_of(job.settings, ranks.replicas());
  const EpochPlan plan{images, images, 1};
  check_batch_norm(*job.network, job.settings, plan.smallest_group(division), image_size);
  std::unique_ptr<StepRunner> runner = make_runner(job);
  DeviceContext& device = context(job.settings.devices[0]);
  const std::vector<std::int64_t> shares = shares_of(images, ranks.replicas());
  ReadyBatches feed({made_up_batch(*job.network, shares, ranks, image_size)});

  StepBenchResult result;
  result.replicas = ranks.replicas();
  ReduceSeconds before;
  for (std::int64_t step = 0; step <= options.steps; ++step) {
    ranks.begin_step(step + 1);
    const Clock::time_point start = Clock::now();
    runner->step({.step = step + 1, .images = images, .lr = 0.001, .shares = {shares}}, feed);
    device.default_stream().synchronize();
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    if (step > 0) result.seconds.push_back(seconds);
    if (step == 0) before = runner->reduce_seconds();
    progress(step, options.steps);
  }
  result.peak_rss_mb = peak_rss_mb();
  result.device_peak_mb = static_cast<double>(device.memory().statistics().peak_in_use) / 1048576;
  sum_up(result, images, before, runner->reduce_seconds());
  result.peak_flops = peak_of_all(job.settings, ranks);
  if (result.peak_flops > 0) {
    result.share_of_peak = flops_of_step(*job.network, images, image_size) /
                           median(result.seconds) / result.peak_flops;
  }
  return result;
}

}  // namespace convoy
