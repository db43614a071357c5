// Brings a file of weights and the entries of a network together, whole or not at all.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/io/named_array.h"
#include "engine/io/safetensors.h"

namespace convoy {

/// An entry of a network: a parameter or buffer by its full name.
struct WantedEntry {
  std::string name;
  std::vector<std::int64_t> shape;
};

/// The tensors for a network, in the order wanted.
struct MatchedWeights {
  /// A counter num_batches_tracked that the file lacks is absent here too.
  std::vector<NamedArray> tensors;
  /// What a user should know: "stripped 'module.' from all names", "320 of 320 entries".
  std::vector<std::string> notes;
};

/// Finds a tensor for each wanted entry. `module.` (and `_orig_mod.`) in front of all names is
/// stripped and said. `checkpoint` with counts and the first five of each if entries are missing,
/// unexpected, of another shape (both shapes) or not floating where weights are wanted.
MatchedWeights match_weights(const std::vector<WantedEntry>& wanted, SafetensorsFile file);

}  // namespace convoy
