#include "engine/parallel/bucket_plan.h"

#include <algorithm>

#include "kernels/base/error.h"

namespace convoy {

BucketPlan plan_buckets(const std::vector<std::int64_t>& bytes, const BucketLimits& limits) {
  CONVOY_CHECK(limits.first >= 0 && limits.rest >= 0,
               "buckets: limits of {} and {} bytes, expected at least 0", limits.first,
               limits.rest);
  BucketPlan plan;
  std::int64_t held = 0;
  bool open = false;
  for (std::size_t i = bytes.size(); i-- > 0;) {
    if (!open) plan.emplace_back();
    plan.back().push_back(i);
    held = (open ? held : 0) + bytes[i];
    open = held < (plan.size() == 1 ? limits.first : limits.rest);
  }
  return plan;
}

}  // namespace convoy
