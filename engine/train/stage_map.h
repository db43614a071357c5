// What every worker knows of all stages of a network: names, shapes, what crosses the cuts. The
// network itself may be gone.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/nn/slice.h"

namespace convoy {

/// Something that crosses a cut, or goes into the first stage or out of the last one.
struct CrossingTensor {
  Shape shape;        ///< for one image
  bool flows = true;  ///< a gradient comes back
};

struct StageEntry {
  int first = 0;  ///< layers [first, end)
  int end = 0;
  std::vector<CrossingTensor> inputs;
  std::vector<CrossingTensor> outputs;
  std::vector<std::string> parameters;  ///< names, in the order of the network
};

struct StageMap {
  std::vector<StageEntry> stages;
  std::vector<std::string> state;     ///< names of the whole network's state, in order
  std::int64_t parameter_values = 0;  ///< elements of all parameters
  std::int64_t buffer_values = 0;

  int count() const { return static_cast<int>(stages.size()); }
};

/// `cuts`: the places of S - 1 cuts, ascending; `sample`: the shape of one image, (1, ...). `usage`
/// for a stage without layers.
StageMap map_stages(const Network& network, const std::vector<int>& cuts, const Shape& sample);

/// Shapes of `tensors` for so many images.
std::vector<Shape> shapes_for(const std::vector<CrossingTensor>& tensors, std::int64_t images);

}  // namespace convoy
