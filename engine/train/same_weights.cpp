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

void check_same_weights(const std::vector<std::string>& hashes, const std::string& when,
                        const Layout& layout) {
  if (std::all_of(hashes.begin(), hashes.end(),
                  [&](const std::string& hash) { return hash == hashes.front(); })) {
    return;
  }
  const Majority common = most_common(hashes);
  const auto odd = std::find_if(hashes.begin(), hashes.end(),
                                [&](const std::string& hash) { return hash != common.hash; });
  const char* what = layout.workers_per_replica > 1 ? "replica" : "rank";
  const auto place = static_cast<int>(odd - hashes.begin());
  const auto count = std::ssize(hashes);
  if (2 * common.replicas <= count) {
    CONVOY_FAIL(communication,
                "{}, the weights of {}s {} and {} differ: hash {} and {}; no more than {} of {} "
                "{}s have the same",
                when, what, std::find(hashes.begin(), hashes.end(), common.hash) - hashes.begin(),
                place, common.hash, *odd, common.replicas, count, what);
  }
  throw Error(ErrorKind::communication,
              fmt::format("{}, the weights of {} {} differ from those of {} of {} {}s: hash {}, "
                          "expected {}",
                          when, what, place, common.replicas, count, what, *odd, common.hash),
              CONVOY_PLACE, layout.rank_of(place, 0));
}

}  // namespace convoy
