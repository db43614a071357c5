// From logits to what people read.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace convoy::cli {

/// One class and its probability.
struct Guess {
  std::int64_t label = 0;
  std::string name;
  double p = 0;
};

/// The `count` likeliest classes (all, if there are fewer), the first of equals first.
/// Probabilities are the softmax of all `logits`, computed in float64. A class without a name is
/// called by its number. `numerics` if a logit is not finite.
std::vector<Guess> top_guesses(const std::vector<double>& logits,
                               const std::vector<std::string>& names, std::size_t count);

}  // namespace convoy::cli
