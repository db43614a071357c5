// The channels of a group that was split off: those of the whole group, under tags of its own.
#pragma once

#include <memory>
#include <vector>

#include "comm/channel.h"

namespace convoy {

class SubFabric final : public Fabric {
 public:
  /// `members`: ranks in `whole`, this worker among them. `group`: a number from 1 on that no other
  /// group of any two of the members has.
  SubFabric(std::shared_ptr<Fabric> whole, std::vector<int> members, int group);

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(members_.size()); }
  const char* name() const override { return whole_->name(); }
  std::size_t piece_bytes() const override { return whole_->piece_bytes(); }
  SendEnd& to(int peer, int tag) override;
  ReceiveEnd& from(int peer, int tag) override;
  bool shares_memory(int peer) const override { return whole_->shares_memory(members_[peer]); }
  HostMemory& memory() override { return whole_->memory(); }

 private:
  int tag_in_whole(int tag) const;

  std::shared_ptr<Fabric> whole_;
  std::vector<int> members_;
  int group_;
  int rank_;
};

}  // namespace convoy
