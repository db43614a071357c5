// What a measured training step has before it.
#pragma once

namespace convoy {

/// Steps that are not counted: the first makes primitives and takes memory, the second still finds
/// memory for what the first had at other times.
inline constexpr int kWarmUpSteps = 2;

}  // namespace convoy
