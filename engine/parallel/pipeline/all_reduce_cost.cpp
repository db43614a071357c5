#include "engine/parallel/pipeline/all_reduce_cost.h"

#include <algorithm>

namespace convoy {

double AllReduceCost::seconds(double bytes) const {
  if (replicas < 2 || bytes <= 0) return 0;
  const double others = replicas - 1;
  const double moved = 2 * others / replicas * bytes;
  return 2 * others * link.latency_s + (link.bytes_per_s > 0 ? moved / link.bytes_per_s : 0);
}

double exposed_all_reduce(const AllReduceCost& cost, const std::vector<GradientPart>& parts) {
  double now = 0, free_at = 0, bucket = 0, sum = 0, limit = cost.first;
  const auto send = [&] {
    const double seconds = cost.seconds(bucket);
    sum += seconds;
    free_at = std::max(free_at, now) + seconds;
    bucket = 0;
    limit = cost.rest;
  };
  for (const GradientPart& part : parts) {
    now += part.seconds;
    bucket += part.bytes;
    if (bucket >= limit) send();
  }
  send();
  return cost.overlaps ? std::max(0.0, free_at - now) : sum;
}

}  // namespace convoy
