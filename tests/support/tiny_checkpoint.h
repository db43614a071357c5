// A small training state whose every byte follows from one number.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/io/checkpoint.h"
#include "engine/io/hash.h"
#include "tests/support/arrays.h"

namespace convoy::testing {

/// `count` values that differ for each `value` and look random.
inline std::vector<float> tiny_values(int value, int count) {
  std::vector<float> values;
  auto state = static_cast<std::uint32_t>(value * 2654435761u + 1);
  for (int i = 0; i < count; ++i) {
    state = state * 1664525u + 1013904223u;
    values.push_back(static_cast<float>(static_cast<std::int32_t>(state)) * 0x1p-31f);
  }
  return values;
}

inline CheckpointContent tiny_checkpoint(int value, int count = 12) {
  CheckpointContent content;
  content.model = {make_array<std::int64_t>("bn.num_batches_tracked", {}, {value}),
                   make_array("conv.weight", {count}, tiny_values(value, count)),
                   make_array("fc.bias", {2}, tiny_values(value + 1, 2))};
  content.optimizer = {make_array("conv.weight", {count}, tiny_values(value + 2, count))};
  content.manifest.model = "tiny";
  content.manifest.epoch = value;
  content.manifest.class_names = {"a", "b"};
  content.manifest.settings = {{"lr", "0.1"}};
  return content;
}

}  // namespace convoy::testing
