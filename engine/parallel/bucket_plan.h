// Which gradients travel together. Backward makes the last layers' gradients first, so buckets go
// from the end of the model to its start; the first one is small, so that sending begins early.
//
//     model order   conv1 ... layer4 | fc.weight fc.bias         ResNet-50, bytes:
//     buckets            4 <- 3 <- 2 | <------------- 1          8,196,000  31,502,336  26,255,360
//     ...
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace convoy {

/// A bucket is closed as soon as it holds this many bytes.
struct BucketLimits {
  std::int64_t first = std::int64_t{1} << 20;
  std::int64_t rest = std::int64_t{25} << 20;
};

/// The most that buckets hold beside the gradients that they are to replace, for `bytes` of
/// gradients, the largest of `largest` bytes: two are on their way at a time.
inline double bucket_bytes(double bytes, double largest, const BucketLimits& limits = {}) {
  return std::min(bytes, static_cast<double>(limits.first + limits.rest) + 2 * largest);
}

/// Places of tensors, by their places in the model, in the order in which a bucket takes them.
using BucketPlan = std::vector<std::vector<std::size_t>>;

/// Buckets in the order in which they are sent, for tensors of these sizes in model order. `usage`
/// for a negative limit.
BucketPlan plan_buckets(const std::vector<std::int64_t>& bytes, const BucketLimits& limits = {});

}  // namespace convoy
