// What a comparison of steps has found: the first difference by network order, the largest ones.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "engine/train/compared_state.h"
#include "engine/train/verify.h"

namespace convoy {

class Differences {
 public:
  explicit Differences(VerifyResult& result) : result_(result) {}

  void begin_step(std::int64_t step) { step_ = step; }
  void numbers(const StepResult& layout, const StepResult& one);
  /// Compares hashes. Returns the places in `layout` of tensors whose values are wanted.
  std::vector<std::size_t> hashes(const std::vector<StateEntry>& layout,
                                  const std::vector<HeldEntry>& one, const Network& network);
  /// Of an entry whose hashes differ.
  void values(const StateEntry& entry, const std::vector<std::byte>& layout);
  /// The step's findings go into the result.
  void end_step();

 private:
  using Key = std::tuple<StatePart, int, std::string>;
  void differs(const StateEntry& entry, const Network& network,
               std::optional<std::int64_t> micro_batch = {});
  void grow(StatePart part, const std::string& name, double value);
  void note_first(int phase, std::int64_t place, FirstDifference found);

  VerifyResult& result_;
  std::int64_t step_ = 0;
  std::map<Key, const HeldEntry*> expected_;
  std::optional<FirstDifference> first_;  // of this step
  std::pair<int, std::int64_t> first_place_;
};

}  // namespace convoy
