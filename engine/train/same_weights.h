// All replicas hold the same network: what says so, and who is wrong if not.
#pragma once

#include <string>
#include <vector>

#include "engine/train/layout.h"

namespace convoy {

/// `communication` unless the hashes of all replicas are equal. Of three and more, the first one
/// that differs from what most have is named and its first rank is the error's; of two, both are
/// named. Where a replica is one worker it is called by its rank.
void check_same_weights(const std::vector<std::string>& hashes, const std::string& when,
                        const Layout& layout = {});

}  // namespace convoy
