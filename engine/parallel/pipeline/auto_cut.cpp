#include "engine/parallel/pipeline/auto_cut.h"

#include <algorithm>

#include "kernels/base/error.h"

namespace convoy {
namespace {

std::int64_t largest(const std::vector<std::int64_t>& images) {
  CONVOY_CHECK(!images.empty(), "cut: no micro-batch");
  return *std::max_element(images.begin(), images.end());
}

}  // namespace

PartitionTask cut_task(const std::vector<Profile>& profiles, const CutRequest& request) {
  PartitionTask task;
  task.nodes = profile_at(profiles, largest(request.images)).nodes;
  task.schedule = request.schedule;
  task.devices = request.kinds;
  task.caps = request.caps;
  task.images = request.images;
  task.link = request.link;
  task.host_s = request.host_s;
  task.recompute = request.recompute;
  return task;
}

std::vector<int> auto_cut(const std::vector<Profile>& profiles, const CutRequest& request) {
  const Partition best = choose_partition(cut_task(profiles, request));
  return places_of(profiles.front(), best.ends);
}

std::vector<int> auto_cut(Network& network, ProfileOptions options, const CutRequest& request) {
  options.images = largest(request.images);
  return auto_cut({profile_network(network, options)}, request);
}

std::vector<int> places_of(const Profile& profile, const std::vector<int>& node_ends) {
  std::vector<int> places;
  for (std::size_t stage = 0; stage + 1 < node_ends.size(); ++stage) {
    places.push_back(profile.ends.at(static_cast<std::size_t>(node_ends[stage] - 1)));
  }
  return places;
}

std::vector<int> node_ends_of(const Profile& profile, const std::vector<int>& places) {
  std::vector<int> ends;
  for (int place : places) {
    const auto found = std::find(profile.ends.begin(), profile.ends.end(), place);
    CONVOY_CHECK(found != profile.ends.end(),
                 "cut: layer {} does not begin a node: it runs with the layer before it", place);
    ends.push_back(static_cast<int>(found - profile.ends.begin()) + 1);
  }
  ends.push_back(static_cast<int>(profile.nodes.size()));
  return ends;
}

}  // namespace convoy
