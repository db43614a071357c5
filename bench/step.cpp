#include "bench/step.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <thread>

#include "bench/made_up.h"
#include "bench/median.h"
#include "bench/op_times.h"
#include "bench/warm_up.h"
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
double peak_now(const Settings& settings, const Ranks& ranks) {
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

// The best of a few short windows: a neighbour on the machine slows one of them, hardly all.
double best_peak(const Settings& settings, const Ranks& ranks) {
  constexpr int kWindows = 3;
  double best = 0;
  for (int i = 0; i < kWindows; ++i) best = std::max(best, peak_now(settings, ranks));
  return best;
}

std::uint64_t system_requests(const Settings& settings) {
  std::uint64_t sum = 0;
  for (const std::string& device : settings.devices) {
    sum += context(device).memory().statistics().system_requests;
  }
  return sum;
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

/// Steps of one job on one batch, again and again.
class Stepper {
 public:
  Stepper(const TrainingJob& job, const Ranks& ranks, std::vector<std::int64_t> shares,
          std::int64_t image_size)
      : ranks_(ranks),
        images_(job.settings.batch),
        shares_(std::move(shares)),
        runner_(make_runner(job)),
        device_(context(job.settings.devices[0])),
        feed_({made_up_batch(*job.network, shares_, ranks, image_size)}) {}

  /// Its seconds.
  double step() {
    ranks_.begin_step(++done_);
    const Clock::time_point start = Clock::now();
    runner_->step({.step = done_, .images = images_, .lr = 0.001, .shares = {shares_}}, feed_);
    device_.default_stream().synchronize();
    return std::chrono::duration<double>(Clock::now() - start).count();
  }
  ReduceSeconds reduced() const { return runner_->reduce_seconds(); }
  Stream& stream() { return device_.default_stream(); }

 private:
  using Clock = std::chrono::steady_clock;

  const Ranks& ranks_;
  const std::int64_t images_;
  const std::vector<std::int64_t> shares_;
  std::unique_ptr<StepRunner> runner_;
  DeviceContext& device_;
  ReadyBatches feed_;
  std::int64_t done_ = 0;
};

// In steps of their own: recording costs a little for each kernel.
void time_ops(Stepper& stepper, StepBenchResult& result) {
  constexpr int kSteps = 2;
  const auto times = std::make_shared<OpTimes>();
  const double exposed_before = stepper.reduced().exposed;
  double all = 0;
  stepper.stream().record_to(times);
  for (int i = 0; i < kSteps; ++i) {
    times->begin_step();
    all += stepper.step() / kSteps;
  }
  stepper.stream().record_to(nullptr);
  stepper.stream().synchronize();
  double known = (stepper.reduced().exposed - exposed_before) / kSteps;
  const double exposed = known;
  for (const auto& [name, seconds] : times->seconds()) {
    result.op_seconds.emplace_back(name, seconds / kSteps);
    known += seconds / kSteps;
  }
  if (result.replicas > 1) result.op_seconds.emplace_back("communication", exposed);
  result.op_seconds.emplace_back("host", std::max(0.0, all - known));
  result.host_stalls = static_cast<double>(times->stalls()) / kSteps;
}

}  // namespace

StepBenchResult bench_step(const StepBenchOptions& options,
                           const std::function<void(std::int64_t, std::int64_t)>& progress) {
  const std::int64_t images = options.settings.batch;
  const std::int64_t image_size = options.settings.image_size.value_or(kImageSize);
  const Ranks ranks(options.group);
  const TrainingJob job = job_of(options, image_size);
  const Division division = division_of(job.settings, ranks.replicas());
  const EpochPlan plan{images, images, 1};
  check_batch_norm(*job.network, job.settings, plan.smallest_group(division), image_size);
  Stepper stepper(job, ranks, shares_of(images, ranks.replicas()), image_size);

  StepBenchResult result;
  result.replicas = ranks.replicas();
  result.peak_flops = best_peak(job.settings, ranks);
  for (int i = 0; i < kWarmUpSteps; ++i) stepper.step();
  progress(0, options.steps);
  const ReduceSeconds before = stepper.reduced();
  for (std::int64_t step = 1; step <= options.steps; ++step) {
    result.seconds.push_back(stepper.step());
    progress(step, options.steps);
  }
  result.peak_rss_mb = peak_rss_mb();
  DeviceContext& device = context(job.settings.devices[0]);
  result.device_peak_mb = static_cast<double>(device.memory().statistics().peak_in_use) / 1048576;
  sum_up(result, images, before, stepper.reduced());
  const std::uint64_t asked_before = system_requests(job.settings);
  time_ops(stepper, result);
  result.allocations = system_requests(job.settings) - asked_before;
  result.peak_flops = std::max(result.peak_flops, best_peak(job.settings, ranks));
  if (result.peak_flops > 0) {
    result.share_of_peak = flops_of_step(*job.network, images, image_size) /
                           median(result.seconds) / result.peak_flops;
  }
  return result;
}

}  // namespace convoy
