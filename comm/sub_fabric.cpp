#include "comm/sub_fabric.h"

#include <algorithm>

#include "kernels/base/error.h"

namespace convoy {

SubFabric::SubFabric(std::shared_ptr<Fabric> whole, std::vector<int> members, int group)
    : whole_(std::move(whole)), members_(std::move(members)), group_(group) {
  constexpr int kLastGroup = 32766;
  if (group > kLastGroup) {
    CONVOY_FAIL(resource, "split: group number {}, expected at most {}", group, kLastGroup);
  }
  const auto me = std::find(members_.begin(), members_.end(), whole_->rank());
  CONVOY_DCHECK(me != members_.end(), "split: rank {} is not a member", whole_->rank());
  rank_ = static_cast<int>(me - members_.begin());
}

SendEnd& SubFabric::to(int peer, int tag) {
  return whole_->to(members_[peer], tag_in_whole(tag));
}

ReceiveEnd& SubFabric::from(int peer, int tag) {
  return whole_->from(members_[peer], tag_in_whole(tag));
}

/// -1, -2 of group g become -1 - 2g, -2 - 2g; messages have 65536 tags a group.
int SubFabric::tag_in_whole(int tag) const {
  return tag < 0 ? tag - 2 * group_ : tag + (kLastTag + 1) * group_;
}

}  // namespace convoy
