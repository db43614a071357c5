// Values made by a formula, so that tests and reference files need no stored inputs: element i of
// the tensor `name` is value(name, i) = (splitmix64(fnv1a64(name) + i) >> 11) * 2^-53, in [0, 1).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace convoy::testing {

/// value(name, 0), value(name, 1), ...: `count` numbers in [0, 1).
std::vector<double> uniform(std::string_view name, std::int64_t count);

/// 2 * value - 1, in [-1, 1).
std::vector<double> signed_values(std::string_view name, std::int64_t count);

/// Whole numbers in -limit..limit.
std::vector<double> integers(std::string_view name, std::int64_t count, int limit);

/// What reference files keep of a tensor: its first four values, its L2 norm, and its product with
/// signed_values("probe/" + name).
struct Digest {
  std::vector<double> first;
  double norm = 0;
  double projection = 0;
};

/// What difference() says where there is none: with a name, a failed CHECK shows what there is.
inline constexpr std::string_view kNoDifference = "";

/// Empty if all parts of `actual` are within `tolerance`, relative to the norm; else what differs.
std::string difference(const Digest& actual, const Digest& expected, double tolerance);

/// The digest of `values` under `name`, in row-major order.
Digest digest(std::string_view name, const std::vector<double>& values);

}  // namespace convoy::testing
