#include "bench/split.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "bench/made_up.h"
#include "bench/median.h"
#include "bench/split_cuts.h"
#include "bench/split_names.h"
#include "bench/timed_program.h"
#include "bench/warm_up.h"
#include "engine/data/order.h"
#include "engine/nn/layers.h"
#include "engine/parallel/pipeline/profile.h"
#include "engine/parallel/pipeline/schedules.h"
#include "engine/train/defaults.h"
#include "engine/train/setup.h"
#include "kernels/base/error.h"
#include "models/models.h"

namespace convoy {
namespace {

constexpr const char* kSingle = "single";
constexpr const char* kModelParallel = "model-parallel";
constexpr const char* kPipeline = "pipeline";
constexpr const char* kDataParallel = "data-parallel";
constexpr int kInterleavedStages = 2;    // of each worker
constexpr double kForecastError = 0.02;  // below that, schedules are alike

/// A row and the program that runs it.
struct Entry {
  SplitRow row;
  std::unique_ptr<TimedProgram> program;
};

Settings bench_settings(Settings settings, bool takes_rows) {
  settings.optimizer = "sgd";
  settings.momentum = 0;
  settings.lr = 0.001;
  settings.weight_decay = 0;
  return resolved_settings(std::move(settings), takes_rows);
}

class SplitBench {
 public:
  SplitBench(const SplitBenchOptions& options, const SplitBenchProgress& progress);
  std::vector<SplitRow> run();

 private:
  int workers() const { return ranks_.group() ? ranks_.group()->size() : 1; }
  std::int64_t batch() const { return settings_.batch; }
  std::shared_ptr<Network> make_network() const {
    return make_model(settings_.model, *settings_.classes, settings_.seed);
  }

  void choose_splits();
  std::int64_t smallest_group(std::int64_t split) const;
  int pipeline_workers() const;
  int most_stages() const { return static_cast<int>(node_ends(*network_).size()); }
  bool takes_several_stages(int each) const;
  bool takes_replicas();
  void check_stages() const;
  void measure_split(std::int64_t split);
  void measure_both();
  void measure_whole();

  SplitRow row_of(const char* mode, std::int64_t split, int replicas, int workers) const;
  SplitRow model_parallel_row();
  SplitRow scheduled(SplitRow row, const std::string& schedule);
  CutShape shape_of(const SplitRow& row) const;
  std::vector<std::string> schedules_for(const SplitRow& row) const;
  TrainingJob job_of(const SplitRow& row) const;
  std::shared_ptr<ReadyBatches> feed_of(const SplitRow& row);
  Entry make_entry(SplitRow row);
  SplitRow fastest_of(const SplitRow& row);
  double step(Entry& entry);
  void measure(std::vector<Entry> entries);
  void say(const std::string& text) { progress_(text); }
  const SplitRow& fastest_pipeline() const;
  std::vector<SplitRow> finished_rows();

  const SplitBenchOptions& options_;
  const SplitBenchProgress& progress_;
  const Ranks ranks_;
  Settings settings_;
  std::shared_ptr<Network> network_;  // for names, shapes and profiles
  std::vector<std::int64_t> splits_;
  std::unique_ptr<SplitCuts> cuts_;
  bool has_replicas_ = false;                           // whether the devices take them
  std::map<int, std::shared_ptr<ReadyBatches>> feeds_;  // by workers of a replica; 0: alone
  std::vector<SplitRow> rows_;                          // those measured
};

SplitBench::SplitBench(const SplitBenchOptions& options, const SplitBenchProgress& progress)
    : options_(options), progress_(progress), ranks_(options.group), settings_(options.settings) {
  settings_.classes = settings_.classes.value_or(1000);
  settings_.image_size = settings_.image_size.value_or(kImageSize);
  network_ = make_network();
  settings_ = bench_settings(settings_, network_->takes_rows());
  set_batch_norm_mode(*network_, batch_norm_mode(settings_));
  if (workers() > 1) check_stages();  // refuses early
  has_replicas_ = workers() > 1 && takes_replicas();
  choose_splits();
  cuts_ = std::make_unique<SplitCuts>(*network_, settings_, ranks_);
}

std::vector<SplitRow> SplitBench::run() {
  for (std::int64_t split : splits_) measure_split(split);
  if (workers() > 1 && !splits_.empty()) measure_both();
  measure_whole();
  return finished_rows();
}

// Programs that are compared take turns. Only these are there: each keeps weights, and links that
// look for messages.
void SplitBench::measure(std::vector<Entry> entries) {
  for (Entry& entry : entries) entry.program->account();  // from here on
  for (std::int64_t round = 1; round <= options_.repeats; ++round) {
    for (Entry& entry : entries) {
      say(fmt::format("step {} of {}: {}", round, options_.repeats, row_name(entry.row)));
      entry.row.seconds.push_back(step(entry));
    }
  }
  for (Entry& entry : entries) {
    if (entry.row.stages > 1) add_account(entry.row, entry.program->account());
    rows_.push_back(std::move(entry.row));
  }
}

void SplitBench::choose_splits() {
  const std::int64_t least = least_micro_batch(*network_, settings_.bn, *settings_.image_size);
  splits_ = options_.splits;
  for (std::int64_t split : kSplits) {
    const bool fits = split < batch() && smallest_group(split) >= least;
    if (options_.splits.empty() && fits) splits_.push_back(split);
  }
  for (std::int64_t split : splits_) {
    CONVOY_CHECK(split >= 1 && split < batch(),
                 "--splits {}: a micro-batch has at least 1 image and fewer than the batch of {}",
                 split, batch());
    check_batch_norm(*network_, settings_, smallest_group(split), *settings_.image_size);
  }
}

// That batch norm sees in any row of this split: a replica's last micro-batch may be short.
std::int64_t SplitBench::smallest_group(std::int64_t split) const {
  Settings settings = settings_;
  settings.micro_batch_size = split;
  settings.micro_batches.reset();
  const EpochPlan plan{batch(), batch(), 1};
  std::int64_t smallest = batch();
  for (int replicas = 1; replicas <= workers(); ++replicas) {
    if (workers() % replicas != 0) continue;
    smallest = std::min(smallest, plan.smallest_group(division_of(settings, replicas)));
  }
  return smallest;
}

// Of each replica: as a cut by hand has it, else all.
int SplitBench::pipeline_workers() const {
  if (settings_.cut == "auto") return workers();
  const auto stages = static_cast<int>(split_names(settings_.cut).size()) + 1;
  CONVOY_CHECK(
      workers() % stages == 0,
      "--cut {}: that makes {} stages, but there are {} workers, expected {} or a multiple "
      "of it",
      settings_.cut, stages, workers(), stages);
  return stages;
}

// Whether each of a pipeline's workers can have several stages of an automatic cut.
bool SplitBench::takes_several_stages(int each) const {
  return settings_.cut == "auto" && each * kInterleavedStages <= most_stages();
}

void SplitBench::check_stages() const {
  const int each = pipeline_workers();
  CONVOY_CHECK(each <= most_stages(),
               "bench split: {} can be cut into at most {} stages, but there are {} workers",
               settings_.model, most_stages(), each);
  if (settings_.cut != "auto" || takes_several_stages(each) || !options_.on_note) return;
  options_.on_note(
      fmt::format("bench split: interleaved is left out: it has {} stages a worker, and {} can be "
                  "cut into at most {} stages",
                  kInterleavedStages, settings_.model, most_stages()));
}

// Over NCCL each needs a GPU of its own.
bool SplitBench::takes_replicas() {
  const std::set<std::string> different(settings_.devices.begin(), settings_.devices.end());
  const bool shared = different.size() < settings_.devices.size();
  if (!ranks_.any(shared) || !uses_nccl(settings_, ranks_)) return true;
  if (options_.on_note) {
    options_.on_note(
        "bench split: data parallel is left out: NCCL takes no GPU twice, --comm thread does");
  }
  return false;
}

void SplitBench::measure_split(std::int64_t split) {
  std::vector<Entry> entries;
  entries.push_back(make_entry(row_of(kSingle, split, 1, 1)));
  if (workers() > 1) {
    const int each = pipeline_workers();
    entries.push_back(make_entry(fastest_of(row_of(kPipeline, split, workers() / each, each))));
  }
  if (has_replicas_ && split < shares_of(batch(), workers()).front()) {
    entries.push_back(make_entry(row_of(kDataParallel, split, workers(), 1)));
  }
  measure(std::move(entries));
}

// Replicas of pipelines, in the micro-batches that were best for one pipeline.
void SplitBench::measure_both() {
  if (settings_.cut != "auto" || !has_replicas_) return;
  const std::int64_t split = fastest_pipeline().split;
  for (int each = 2; each < workers(); ++each) {
    if (workers() % each != 0) continue;
    std::vector<Entry> entries;
    entries.push_back(make_entry(fastest_of(row_of(kPipeline, split, workers() / each, each))));
    measure(std::move(entries));
  }
}

void SplitBench::measure_whole() {
  std::vector<Entry> entries;
  entries.push_back(make_entry(row_of(kSingle, batch(), 1, 1)));
  if (workers() > 1) {
    entries.push_back(make_entry(model_parallel_row()));
  }
  if (has_replicas_) {
    const std::int64_t share = shares_of(batch(), workers()).front();
    entries.push_back(make_entry(row_of(kDataParallel, share, workers(), 1)));
  }
  measure(std::move(entries));
}

// All its cuts take the same time but for the transfers; the pipelines' makes the two comparable.
SplitRow SplitBench::model_parallel_row() {
  const int each = pipeline_workers();
  SplitRow row = row_of(kModelParallel, batch(), workers() / each, each);
  row = scheduled(std::move(row), "fill-drain");
  const SplitRow* model = nullptr;
  for (const SplitRow& other : rows_) {
    const bool fits = other.stages == row.stages && other.replicas == row.replicas;
    if (fits && (!model || median(other.seconds) < median(model->seconds))) model = &other;
  }
  if (model) row.cut = model->cut;
  return row;
}

SplitRow SplitBench::row_of(const char* mode, std::int64_t split, int replicas, int workers) const {
  SplitRow row;
  row.mode = mode;
  row.replicas = replicas;
  row.workers = workers;
  row.stages = workers;
  const std::int64_t share = shares_of(batch(), replicas).front();
  row.split = row.mode == kModelParallel ? batch() : std::min(split, share);
  row.micro_batches = std::ssize(split_batch(share, {.size = row.split}));
  return row;
}

SplitRow SplitBench::scheduled(SplitRow row, const std::string& schedule) {
  row.schedule = schedule;
  row.stages = row.workers * (schedule == "interleaved" ? kInterleavedStages : 1);
  row.cut = settings_.cut == "auto" ? cuts_->choose(shape_of(row)) : split_names(settings_.cut);
  return row;
}

CutShape SplitBench::shape_of(const SplitRow& row) const {
  const std::int64_t share = shares_of(batch(), row.replicas).front();
  return {.schedule = row.schedule,
          .workers = row.workers,
          .stages_per_worker = row.stages / row.workers,
          .images = split_batch(share, {.size = row.split})};
}

// With one micro-batch all are the same; `interleaved` needs a cut of its own, enough nodes for it
// and a micro-batch a worker.
std::vector<std::string> SplitBench::schedules_for(const SplitRow& row) const {
  if (row.micro_batches == 1) return {"fill-drain"};
  std::vector<std::string> names;
  for (const NamedSchedule& schedule : kSchedules) {
    const bool fits = takes_several_stages(row.workers) && row.micro_batches >= row.workers;
    if (schedule.several_stages && !fits) continue;
    names.emplace_back(schedule.name);
  }
  return names;
}

TrainingJob SplitBench::job_of(const SplitRow& row) const {
  TrainingJob job;
  job.settings = settings_;
  job.image_size = *settings_.image_size;
  job.make_network = [given = settings_] {
    return make_model(given.model, *given.classes, given.seed);
  };
  job.network = job.make_network();
  job.settings.cut = row.stages > 1 ? join_names(row.cut) : "auto";
  job.settings.stages = std::to_string(row.stages);
  job.settings.stages_per_worker = row.stages / row.workers;
  job.settings.replicas = row.replicas;
  if (!row.schedule.empty()) job.settings.schedule = row.schedule;
  job.settings.micro_batch_size = row.split;
  job.settings.micro_batches.reset();
  if (row.mode == kSingle) {
    job.settings.devices.resize(1);
  } else {
    job.group = options_.group;
  }
  return job;
}

std::shared_ptr<ReadyBatches> SplitBench::feed_of(const SplitRow& row) {
  const bool alone = row.mode == kSingle;
  std::shared_ptr<ReadyBatches>& feed = feeds_[alone ? 0 : row.workers];
  if (feed) return feed;
  const Ranks ranks(alone ? nullptr : options_.group, {row.replicas, row.workers});
  const bool one_hot = settings_.loss == "mse" && !network_->takes_rows();
  feed = std::make_shared<ReadyBatches>(std::vector<HostBatch>{made_up_batch(
      *network_, shares_of(batch(), row.replicas), ranks, *settings_.image_size, one_hot)});
  return feed;
}

Entry SplitBench::make_entry(SplitRow row) {
  say("first steps: " + row_name(row));
  const bool takes_part = row.mode != kSingle || ranks_.leads();
  auto program =
      std::make_unique<TimedProgram>(job_of(row), ranks_, takes_part ? feed_of(row) : nullptr,
                                     shares_of(batch(), row.replicas), takes_part);
  Entry entry{std::move(row), std::move(program)};
  for (int i = 0; i < kWarmUpSteps; ++i) step(entry);
  return entry;
}

// By the simulator, from the nodes' and the link's times: a step or two of each would choose by
// noise, since schedules often differ by less than two steps of one. Of those that are alike the
// one with fewer stages: it sends and keeps less, which the nodes' times do not show.
SplitRow SplitBench::fastest_of(const SplitRow& row) {
  SplitRow best;
  double best_s = 0;
  for (const std::string& schedule : schedules_for(row)) {
    say("choosing a schedule for " + row.mode + " " + std::to_string(row.split));
    SplitRow candidate = scheduled(row, schedule);
    double seconds = cuts_->forecast(shape_of(candidate), candidate.cut);
    seconds *= 1 + kForecastError * (candidate.stages - row.stages) / row.stages;
    if (!best.schedule.empty() && seconds >= best_s) continue;
    best = std::move(candidate);
    best_s = seconds;
  }
  return best;
}

// The leading process's seconds, on all.
double SplitBench::step(Entry& entry) {
  return std::stod(ranks_.from_leader(fmt::format("{}", entry.program->step())));
}

// Of those so far.
const SplitRow& SplitBench::fastest_pipeline() const {
  const SplitRow* best = nullptr;
  for (const SplitRow& row : rows_) {
    if (row.mode != kPipeline) continue;
    if (!best || median(row.seconds) < median(best->seconds)) best = &row;
  }
  return *best;
}

// In the order of the modes and splits, the whole batch first; the leading process adds what its
// node times say.
std::vector<SplitRow> SplitBench::finished_rows() {
  std::vector<SplitRow> rows;
  for (const char* mode : {kSingle, kModelParallel, kPipeline, kDataParallel}) {
    for (SplitRow& row : rows_) {
      if (row.mode == mode) rows.push_back(std::move(row));
    }
  }
  std::stable_partition(rows.begin(), rows.end(), [&](const SplitRow& row) {
    return row.mode == kSingle && row.split == batch();
  });
  for (SplitRow& row : rows) {
    if (row.stages == 1 || !ranks_.leads()) continue;
    row.ceiling = row.replicas * cuts_->ceiling(shape_of(row), row.cut);
    row.shares = cuts_->shares(shape_of(row), row.cut);
  }
  sum_up(rows, batch());
  return rows;
}

}  // namespace

std::vector<SplitRow> bench_split(const SplitBenchOptions& options,
                                  const SplitBenchProgress& progress) {
  return SplitBench(options, progress).run();
}

}  // namespace convoy
