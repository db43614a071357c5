// The median of measurements.
#pragma once

#include <algorithm>
#include <vector>

#include "kernels/base/error.h"

namespace convoy {

/// The middle value; of an even number of values the mean of the two in the middle.
inline double median(std::vector<double> values) {
  CONVOY_CHECK(!values.empty(), "median: no values");
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 ? values[half] : (values[half - 1] + values[half]) / 2;
}

}  // namespace convoy
