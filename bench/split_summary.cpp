#include "bench/split_summary.h"

#include <cmath>
#include <numeric>

#include "bench/median.h"
#include "kernels/base/error.h"

namespace convoy {
namespace {

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double deviation(const std::vector<double>& values) {
  if (values.size() < 2) return 0;
  const double middle = mean(values);
  double sum = 0;
  for (double value : values) sum += (value - middle) * (value - middle);
  return std::sqrt(sum / static_cast<double>(values.size() - 1));
}

const SplitRow* single_of(const std::vector<SplitRow>& rows, std::int64_t split) {
  for (const SplitRow& row : rows) {
    if (row.mode == "single" && row.split == split) return &row;
  }
  return nullptr;
}

/// The fastest row of the modes, null where there is none.
const SplitRow* fastest(const std::vector<SplitRow>& rows, const std::vector<std::string>& modes) {
  const SplitRow* best = nullptr;
  for (const SplitRow& row : rows) {
    bool wanted = false;
    for (const std::string& mode : modes) wanted |= row.mode == mode;
    if (wanted && (!best || row.images_per_s > best->images_per_s)) best = &row;
  }
  return best;
}

SplitVerdict judge(std::string claim, const SplitRow& row, const SplitRow& against, bool slower) {
  SplitVerdict verdict;
  verdict.claim = std::move(claim);
  verdict.ratio = row.images_per_s / against.images_per_s;
  verdict.holds = slower ? verdict.ratio < 1 : verdict.ratio > 1;
  verdict.row = row_name(row);
  verdict.against = row_name(against);
  verdict.transfer_share = row.transfer_share;
  return verdict;
}

}  // namespace

// Means over the workers.
void add_account(SplitRow& row, const WorkersEvent& event) {
  if (event.workers.empty()) return;  // not the leading process
  double all = 0, bubbles = 0, predicted_all = 0, predicted_bubbles = 0, transfer = 0, host = 0;
  for (const WorkerAccount& worker : event.workers) {
    all += total(worker.measured);
    bubbles += bubble(worker.measured);
    transfer += at(worker.measured, WorkerState::transfer);
    host += at(worker.measured, WorkerState::host);
    predicted_all += total(worker.predicted);
    predicted_bubbles += bubble(worker.predicted);
  }
  row.bubble = bubbles / all;
  row.transfer_share = transfer / all;
  row.host_share = host / all;
  if (predicted_all > 0) row.bubble_predicted = predicted_bubbles / predicted_all;
}

std::string row_name(const SplitRow& row) {
  std::string name = row.mode + " " + std::to_string(row.split);
  if (row.mode == "pipeline") name += ", " + row.schedule;
  if (row.mode == "pipeline" && row.replicas > 1) {
    name += ", " + std::to_string(row.replicas) + " replicas";
  }
  return name;
}

void sum_up(std::vector<SplitRow>& rows, std::int64_t batch) {
  for (SplitRow& row : rows) {
    row.mean_s = mean(row.seconds);
    row.std_s = deviation(row.seconds);
    row.median_s = median(row.seconds);
    row.images_per_s = static_cast<double>(batch) / row.median_s;
  }
  const SplitRow* whole = single_of(rows, batch);
  CONVOY_CHECK(whole, "bench split: no row has the whole batch on one device");
  for (SplitRow& row : rows) {
    row.speed_up = row.images_per_s / whole->images_per_s;
    const SplitRow* same = single_of(rows, row.split);
    if (same) row.speed_up_same_split = row.images_per_s / same->images_per_s;
    if (same && row.ceiling) row.share_of_ceiling = *row.speed_up_same_split / *row.ceiling;
  }
}

std::vector<SplitVerdict> verdicts(const std::vector<SplitRow>& rows) {
  std::vector<SplitVerdict> found;
  const SplitRow* model_parallel = fastest(rows, {"model-parallel"});
  const SplitRow* pipeline = fastest(rows, {"pipeline"});
  const SplitRow* data_parallel = fastest(rows, {"data-parallel"});
  if (model_parallel) {
    found.push_back(judge("model parallel is slower than one device", *model_parallel,
                          *single_of(rows, model_parallel->split), true));
  }
  if (pipeline) {
    found.push_back(judge("pipelined is faster than one device and model parallel", *pipeline,
                          *fastest(rows, {"single", "model-parallel"}), false));
  }
  if (pipeline && data_parallel) {
    found.push_back(
        judge("pipelined is faster than data parallel", *pipeline, *data_parallel, false));
  }
  return found;
}

}  // namespace convoy
