#include "cli/prediction.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels/base/error.h"

namespace convoy::cli {

std::vector<Guess> top_guesses(const std::vector<double>& logits,
                               const std::vector<std::string>& names, std::size_t count) {
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (std::isfinite(logits[i])) continue;
    CONVOY_FAIL(numerics, "predict: the output for class {} is {}", i, logits[i]);
  }
  std::vector<std::size_t> order(logits.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return logits[a] > logits[b]; });
  double sum = 0;
  for (double logit : logits) sum += std::exp(logit - logits[order[0]]);
  std::vector<Guess> guesses;
  for (std::size_t i = 0; i < std::min(count, order.size()); ++i) {
    std::size_t label = order[i];
    std::string name = label < names.size() ? names[label] : std::to_string(label);
    guesses.push_back(
        {static_cast<std::int64_t>(label), name, std::exp(logits[label] - logits[order[0]]) / sum});
  }
  return guesses;
}

}  // namespace convoy::cli
