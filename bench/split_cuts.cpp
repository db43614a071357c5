#include "bench/split_cuts.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "bench/split_names.h"
#include "engine/nn/slice.h"
#include "engine/train/measured_costs.h"
#include "engine/train/setup.h"

namespace convoy {
namespace {

constexpr double kProfileSeconds = 3;  // of a split: more than its least four passes

constexpr Link kNoTransfers = {};

}  // namespace

SplitCuts::SplitCuts(Network& network, const Settings& settings, const Ranks& ranks)
    : network_(network), settings_(settings), ranks_(ranks) {
  if (ranks.group()) link_ = measured_link(*ranks.group(), has_spare_cores(settings));
}

std::vector<std::string> SplitCuts::choose(const CutShape& shape) {
  std::string names;
  if (ranks_.leads()) {
    const Profile& measured = profile(*std::max_element(shape.images.begin(), shape.images.end()));
    std::vector<std::string> cut;
    for (int place : auto_cut({measured}, request(shape, link_))) {
      cut.push_back(cut_name(network_, place));
    }
    names = join_names(cut);
  }
  return split_names(ranks_.from_leader(names));
}

double SplitCuts::forecast(const CutShape& shape, const std::vector<std::string>& cut) {
  const double mine = ranks_.leads() ? simulated(shape, cut, link_).timeline.makespan : 0;
  return std::stod(ranks_.from_leader(fmt::format("{}", mine)));
}

double SplitCuts::ceiling(const CutShape& shape, const std::vector<std::string>& cut) {
  const Partition pipeline = simulated(shape, cut, kNoTransfers);
  double alone = 0;
  for (const StageCost& stage : pipeline.costs) {
    for (std::int64_t images : shape.images) alone += times_at(stage, images).total();
  }
  return alone / pipeline.timeline.makespan;
}

std::vector<double> SplitCuts::shares(const CutShape& shape, const std::vector<std::string>& cut) {
  std::vector<double> seconds;
  for (const StageCost& stage : simulated(shape, cut, kNoTransfers).costs) {
    seconds.push_back(times_at(stage, shape.images.front()).total());
  }
  const double all = std::accumulate(seconds.begin(), seconds.end(), 0.0);
  for (double& value : seconds) value /= all;
  return seconds;
}

const Profile& SplitCuts::profile(std::int64_t images) {
  const auto found = profiles_.find(images);
  if (found != profiles_.end()) return found->second;
  ProfileOptions options;
  options.device = prepare_device(settings_).device();
  options.dtype = dtype_of_precision(settings_);
  options.images = images;
  options.image_size = settings_.image_size.value_or(kImageSize);
  options.mse = settings_.loss == "mse";
  options.states = 0;
  options.budget_s = kProfileSeconds;
  return profiles_.emplace(images, profile_network(network_, options)).first->second;
}

CutRequest SplitCuts::request(const CutShape& shape, const Link& link) const {
  CutRequest request;
  request.link = link;
  request.schedule.name = shape.schedule;
  request.schedule.workers = shape.workers;
  request.schedule.stages_per_worker = shape.stages_per_worker;
  request.schedule.micro_batches.resize(shape.images.size());
  std::iota(request.schedule.micro_batches.begin(), request.schedule.micro_batches.end(), 0);
  request.images = shape.images;
  if (settings_.device_memory) {
    request.caps.assign(static_cast<std::size_t>(shape.workers),
                        static_cast<double>(*settings_.device_memory));
  }
  return request;
}

Partition SplitCuts::simulated(const CutShape& shape, const std::vector<std::string>& cut,
                               const Link& link) {
  const Profile& measured = profile(*std::max_element(shape.images.begin(), shape.images.end()));
  std::vector<int> places;
  for (const std::string& name : cut) places.push_back(find_cut(network_, name));
  return simulate_cuts(cut_task({measured}, request(shape, link)), node_ends_of(measured, places));
}

}  // namespace convoy
