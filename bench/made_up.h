// Made-up batches for measurements: random images that are there before the clock starts, as a
// loader's are.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/data/loader.h"
#include "engine/nn/network.h"
#include "engine/train/ranks.h"

namespace convoy {

/// What this process needs of a batch that `shares` divide over the replicas: images of
/// `image_size` (or rows) and labels, where `one_hot` also as targets.
HostBatch made_up_batch(const Network& network, const std::vector<std::int64_t>& shares,
                        const Ranks& ranks, std::int64_t image_size, bool one_hot = false);

}  // namespace convoy
