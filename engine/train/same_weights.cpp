#include "engine/train/same_weights.h"

#include <algorithm>

#include "kernels/base/error.h"

namespace convoy {
namespace {

struct Majority {
  std::string hash;
  std::ptrdiff_t replicas = 0;
};

Majority most_common(const std::vector<std::string>& hashes) {
  Majority best;
  for (const std::string& hash : hashes) {
    const auto count = std::count(hashes.begin(), hashes.end(), hash);
    if (count > best.replicas) best = {hash, count};
  }
  return best;
}

}  // namespace

void check_same_weights(const std::vector<std::string>& hashes, const std::string& when) {
  if (std::all_of(hashes.begin(), hashes.end(),
                  [&](const std::string& hash) { return hash == hashes.front(); })) {
    return;
  }
  const Majority common = most_common(hashes);
  const auto odd = std::find_if(hashes.begin(), hashes.end(),
                                [&](const std::string& hash) { return hash != common.hash; });
  const auto rank = static_cast<int>(odd - hashes.begin());
  const auto count = std::ssize(hashes);
  if (2 * common.replicas <= count) {
    CONVOY_FAIL(communication,
                "{}, the weights of ranks {} and {} differ: hash {} and {}; no more than {} of {} "
                "ranks have the same",
                when, std::find(hashes.begin(), hashes.end(), common.hash) - hashes.begin(), rank,
                common.hash, *odd, common.replicas, count);
  }
  throw Error(
      ErrorKind::communication,
      fmt::format("{}, the weights of rank {} differ from those of {} of {} ranks: hash {}, "
                  "expected {}",
                  when, rank, common.replicas, count, *odd, common.hash),
      CONVOY_PLACE, rank);
}

}  // namespace convoy
