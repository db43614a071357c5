// The order of an epoch's images: a permutation that (seed, epoch) alone decide, on any platform,
// for any number of ranks and threads.
#pragma once

#include <cstdint>
#include <vector>

namespace convoy {

/// The images 0..count-1 in the order in which epoch `epoch` visits them.
std::vector<std::int64_t> epoch_order(std::uint64_t seed, std::int64_t epoch, std::int64_t count);

/// The images 0..count-1 as they stand: the order of an evaluation.
std::vector<std::int64_t> plain_order(std::int64_t count);

/// The part of a batch that replica `part` of `parts` works on.
struct Share {
  std::int64_t begin = 0;
  std::int64_t count = 0;
};

/// `count` images cut into `parts` shares as equal as can be, the first ones being the larger.
Share share_of(std::int64_t count, int parts, int part);

/// The counts of all `parts` shares: 10 over 4 are 3, 3, 2, 2.
std::vector<std::int64_t> shares_of(std::int64_t count, int parts);

}  // namespace convoy
