// Random numbers without state: a stream is a (seed, name), its i-th number depends on nothing
// else. Philox 4x32-10 (Salmon et al., SC 2011).
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "kernels/base/random_numbers.h"

namespace convoy {

class Tensor;

/// Numbers of one purpose, e.g. the initial values of one parameter.
class RandomStream {
 public:
  RandomStream(std::uint64_t seed, std::string_view name);

  /// `count` numbers, uniform in [0, 1), 53 bits each.
  std::vector<double> uniform(std::int64_t count) const;
  /// `count` standard normal numbers, by Box and Muller.
  std::vector<double> normal(std::int64_t count) const;
  /// Overwrites the values of `tensor` by numbers times `factor`, in row-major order; computed in
  /// double. Queued like any op.
  void fill(const Tensor& tensor, RandomKind kind, double factor) const;

 private:
  std::vector<double> numbers(RandomKind kind, double factor, std::int64_t count) const;

  std::uint64_t seed_;
  std::uint64_t name_hash_;
};

/// Sets the seed of Tensor::rand, Tensor::randn and of the modules that the calling thread makes
/// from now on. Every thread begins with seed 0.
void manual_seed(std::uint64_t seed);

/// The next stream of the calling thread's seed: the n-th call gives the n-th stream.
RandomStream next_random_stream();

}  // namespace convoy
