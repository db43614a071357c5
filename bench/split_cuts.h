// Where `bench split` cuts, and how fast the cut could be: from the times of the network's nodes,
// measured in this run on the leading process's first device, one profile a split.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/nn/network.h"
#include "engine/parallel/pipeline/auto_cut.h"
#include "engine/train/ranks.h"
#include "engine/train/settings.h"

namespace convoy {

/// A pipeline whose cut is wanted.
struct CutShape {
  std::string schedule;
  int workers = 1;
  int stages_per_worker = 1;
  std::vector<std::int64_t> images;  ///< of each micro-batch
};

class SplitCuts {
 public:
  /// All are kept by reference. Collective: measures the link between two workers.
  SplitCuts(Network& network, const Settings& settings, const Ranks& ranks);

  /// Names of the first layers of later stages: the same on all processes, which all make this
  /// call.
  std::vector<std::string> choose(const CutShape& shape);

  /// Seconds of the schedule by the simulator, transfers included: the same on all processes, which
  /// all make this call.
  double forecast(const CutShape& shape, const std::vector<std::string>& cut);

  /// For the leading process: the schedule simulated without transfers, how many times as fast as
  /// one device with the same micro-batches.
  double ceiling(const CutShape& shape, const std::vector<std::string>& cut);
  /// For the leading process: shares of the stages in the work of all.
  std::vector<double> shares(const CutShape& shape, const std::vector<std::string>& cut);

 private:
  const Profile& profile(std::int64_t images);
  CutRequest request(const CutShape& shape, const Link& link) const;
  Partition simulated(const CutShape& shape, const std::vector<std::string>& cut, const Link& link);

  Network& network_;
  const Settings& settings_;
  const Ranks& ranks_;
  Link link_;
  std::map<std::int64_t, Profile> profiles_;
};

}  // namespace convoy
