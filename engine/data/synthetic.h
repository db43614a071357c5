// Made-up data, from (seed, sample) alone: images whose class shows as a pattern under noise, and
// rows whose targets are a fixed linear map of them. Networks can learn both.
#pragma once

#include <cstdint>
#include <memory>

#include "engine/data/dataset.h"

namespace convoy {

/// Which samples of the endless sequence a set holds, and what they look like.
struct SyntheticOptions {
  std::uint64_t seed = 0;
  std::int64_t first = 0;
  std::int64_t count = 0;
};

/// Images of side x side pixels of `classes` classes.
std::shared_ptr<const Dataset> synthetic_images(const SyntheticOptions& options, int side,
                                                std::int64_t classes);

/// Rows of `features` numbers in [-1, 1) with `targets` targets.
std::shared_ptr<const Dataset> synthetic_rows(const SyntheticOptions& options,
                                              std::int64_t features, std::int64_t targets);

}  // namespace convoy
