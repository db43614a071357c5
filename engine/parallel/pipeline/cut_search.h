// The dynamic program behind partition.h, on times and bytes alone.
#pragma once

#include <functional>
#include <vector>

#include "engine/parallel/pipeline/stage_cost.h"

namespace convoy {

/// What is searched: cuts of `nodes` nodes into `stages` stages of at least one node.
struct CutSearch {
  int stages = 1;
  int nodes = 1;
  int micro_batches = 1;
  int keep = 20;              ///< best cuts wanted
  bool phases_apart = false;  ///< fill-drain's objective instead of 1f1b's
  std::function<PhaseTimes(int stage, int first, int end)> times;
  std::function<double(int place)> transfer_s;  ///< across a cut before node `place`, 0 at 0
  std::function<bool(int stage, int first, int end)> fits;
};

struct Cuts {
  std::vector<int> ends;  ///< one past the last node of each stage
  double seconds = 0;     ///< of the window, by the objective
};

/// The best cuts, best first; fewer than `keep` where there are no more (or, with phases apart,
/// none that may be best for some number of micro-batches).
std::vector<Cuts> search_cuts(const CutSearch& search);

/// The objective of given cuts: with phases apart all work and transfers of one micro-batch, and
/// (m-1) times the slowest forward and the slowest backward; else m times the slowest stage.
double cut_seconds(const CutSearch& search, const std::vector<int>& ends);

}  // namespace convoy
