// A cluster that is not here, from a TOML file: kinds of devices with the rates that they reach,
// nodes, and links within and between them. examples/cluster-4096.toml shows all keys.
#pragma once

#include <string>
#include <vector>

#include "engine/parallel/pipeline/planner.h"
#include "engine/parallel/pipeline/roofline.h"

namespace convoy::cli {

struct Cluster {
  std::string name;
  std::vector<DeviceRates> devices;  ///< by kind
  PlanMachine machine;               ///< kinds of its workers are places in `devices`
};

/// Errors are `usage` and name file, line and key.
Cluster read_cluster_file(const std::string& path);

}  // namespace convoy::cli
