// What adding gradients over replicas costs, and how much of it backward does not hide.
#pragma once

#include <vector>

#include "engine/parallel/pipeline/stage_cost.h"

namespace convoy {

/// All-reduces among `replicas` workers in a ring.
struct AllReduceCost {
  int replicas = 1;
  Link link = {};          ///< of a worker to the next one
  bool overlaps = true;    ///< runs beside computing; not where it needs the same cores
  double first = 1 << 20;  ///< bytes that close the first bucket
  double rest = 25 << 20;  ///< and the others

  /// Of one bucket: 2 (n - 1) latencies and 2 (n - 1) / n of its bytes.
  double seconds(double bytes) const;
};

/// Gradients that a part of backward makes final.
struct GradientPart {
  double seconds = 0;  ///< of backward until they are
  double bytes = 0;
};

/// Seconds after backward until all gradients are added: buckets are sent in order as they fill,
/// one at a time. `parts` in the order of backward: the last layer's first.
double exposed_all_reduce(const AllReduceCost& cost, const std::vector<GradientPart>& parts);

}  // namespace convoy
