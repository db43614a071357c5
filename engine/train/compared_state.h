// What `verify` compares of a step: outputs of layers, gradients, running values and weights, each
// as a name and a hash that travel between processes; the values follow only where hashes differ.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/train/layer_watch.h"
#include "engine/train/ranks.h"

namespace convoy {

enum class StatePart { output, gradient, statistic, weight };

/// "output", "gradient", "statistic", "weight".
const char* name(StatePart part);

struct StateEntry {
  StatePart part = StatePart::output;
  int replica = 0;
  int layer = 0;     ///< number in the network
  std::string name;  ///< the layer's, or the tensor's
  /// Hash in hex digits; of outputs 16 of them a micro-batch.
  std::string digest;
  int process = 0;         ///< which has it
  std::int64_t bytes = 0;  ///< of the values; 0 for outputs, which nobody keeps
};

/// An entry and its values, which the device still has.
struct HeldEntry {
  StateEntry entry;
  Tensor values;  ///< undefined for outputs
};

/// The entry of a tensor, with its hash. Waits for the device.
HeldEntry held_entry(StatePart part, int replica, int layer, const std::string& name,
                     const Tensor& values);
/// The entries of outputs.
std::vector<HeldEntry> output_entries(const LayerWatch::Outputs& outputs, const Network& network,
                                      const std::function<int(const Device&)>& replica_of);

/// Of the layers that this process's workers train: those that have had a gradient.
class TrainedState {
 public:
  TrainedState(std::shared_ptr<LayerWatch> watch, std::function<int(const Device&)> replica_of)
      : watch_(std::move(watch)), replica_of_(std::move(replica_of)) {}

  /// After a step.
  std::vector<HeldEntry> read(const Network& network);

 private:
  void add(WatchedLayer& layer, std::vector<HeldEntry>& entries);

  std::shared_ptr<LayerWatch> watch_;
  std::function<int(const Device&)> replica_of_;
  std::set<const WatchedLayer*> trained_;
};

/// The entries of all processes, on all. Collective.
std::vector<StateEntry> all_entries(const Ranks& ranks, const std::vector<HeldEntry>& mine);

/// The values of an entry of all_entries(), on all; `mine` are what this process gave. Collective.
std::vector<std::byte> values_of(const Ranks& ranks, const StateEntry& entry,
                                 const std::vector<HeldEntry>& mine);

}  // namespace convoy
