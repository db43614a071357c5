// Where a network is cut into the stages of a layout: by name, or chosen from measured costs.
#pragma once

#include <string>
#include <vector>

#include "engine/nn/network.h"
#include "engine/train/ranks.h"
#include "engine/train/trainer.h"

namespace convoy {

/// Places of the cuts, one fewer than stages: the number of the first layer of each later stage.
/// `cut` is --cut NAME,NAME. `usage` for unknown names, for too few or too many, for a wrong order
/// and for stages that would be empty.
std::vector<int> cuts_by_name(const Network& network, const std::string& cut, int stages);

/// The same as --cut takes it; "auto" without cuts.
std::string cut_text(const Network& network, const std::vector<int>& cuts);

/// The cuts of `job` for the layout of `ranks`: settings.cut, or, with `auto`, what the leading
/// process has measured to be best. Collective.
std::vector<int> choose_cuts(const TrainingJob& job, const Ranks& ranks);

}  // namespace convoy
