#include "cli/nearest.h"

#include <algorithm>

namespace convoy::cli {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before;  // the row of a[0, i-2]
  std::vector<std::size_t> last(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::vector<std::size_t> row(b.size() + 1, i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
      bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before = std::move(last);
    last = std::move(row);
  }
  return last[b.size()];
}

std::string nearest(std::string_view word, const std::vector<std::string>& names) {
  std::string best;
  std::size_t best_distance = word.size() / 3 + 2;
  for (const std::string& name : names) {
    std::size_t distance = edit_distance(word, name);
    if (distance >= std::max(word.size(), name.size())) continue;  // nothing in common
    if (distance < best_distance) {
      best_distance = distance;
      best = name;
    }
  }
  return best;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& names,
                         std::string_view prefix) {
  std::string name = nearest(word, names);
  if (name.empty()) return {};
  return "; did you mean " + std::string(prefix) + name + "?";
}

}  // namespace convoy::cli
