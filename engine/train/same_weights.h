// All replicas hold the same network: what says so, and who is wrong if not.
#pragma once

#include <string>
#include <vector>

namespace convoy {

/// `communication` unless the hashes of all replicas are equal. Of three and more, the first one
/// that differs from what most have is named and is the error's rank; of two, both are named.
void check_same_weights(const std::vector<std::string>& hashes, const std::string& when);

}  // namespace convoy
