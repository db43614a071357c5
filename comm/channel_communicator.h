// A communicator over any fabric: collectives and messages are written on channels. `thread` and
// `mpi` are this class on two fabrics.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "comm/collectives.h"
#include "comm/host_communicator.h"
#include "comm/progress.h"
#include "comm/waiter.h"

namespace convoy {

struct ChannelOptions {
  ReduceOrder order = ReduceOrder::ranks;
  ProgressBoard* board = nullptr;  ///< of the worker; may be null
  int spins = 0;                   ///< see spins_for()
};

/// Collectives are for one thread at a time: another one that enters meanwhile gets `usage`.
/// Messages are for one thread at a time of each (peer, tag) and direction. Calls that are in work
/// or come later throw when `abort` is raised, as a collective that fails half-way does.
class ChannelCommunicator final : public HostCommunicator {
 public:
  ChannelCommunicator(std::shared_ptr<Fabric> fabric, std::shared_ptr<AbortFlag> abort,
                      const ChannelOptions& options = {});

  int rank() const override { return fabric_->rank(); }
  int size() const override { return fabric_->size(); }
  const char* name() const override { return fabric_->name(); }

  void all_reduce_now(const void* in, void* out, std::int64_t count, DType dtype,
                      Reduction reduction) override;
  void reduce_scatter_now(const void* in, void* out, std::int64_t count, DType dtype,
                          Reduction reduction) override;
  void all_gather_now(const void* in, void* out, std::size_t bytes) override;
  void broadcast_now(void* values, std::size_t bytes, int root) override;
  /// Returns when the message has left this worker: at once while the channel has room.
  void send_now(const void* values, std::size_t bytes, int peer, int tag) override;
  void receive_now(void* values, std::size_t bytes, int peer, int tag) override;
  void send_aside(const void* values, std::size_t bytes, int peer, int tag,
                  const SideWait& wait) override;
  void receive_aside(void* values, std::size_t bytes, int peer, int tag,
                     const SideWait& wait) override;
  /// In rank order only. Null where this rank shares memory with no other.
  std::shared_ptr<std::byte> make_memory(std::size_t bytes) override;
  ProgressBoard* board() const override { return options_.board; }
  std::shared_ptr<AbortFlag> abort_flag() const override { return abort_; }
  void barrier() override;
  /// The splits of one worker must not run at the same time.
  std::unique_ptr<HostCommunicator> split_host(int color, int key) override;
  void abort(const Error& why) override { abort_->raise(why); }

 private:
  /// What a group and those split from it have in common in one worker.
  struct Whole {
    std::shared_ptr<Fabric> fabric;
    std::atomic<int> next_group{1};
  };
  ChannelCommunicator(std::shared_ptr<Whole> whole, std::shared_ptr<Fabric> fabric,
                      std::vector<int> members, std::shared_ptr<AbortFlag> abort,
                      const ChannelOptions& options);
  template <class Work>
  void collective(WaitIn kind, const char* what, Work&& work);
  void send_on(Waiter& waiter, const void* values, std::size_t bytes, int peer, int tag);
  void receive_on(Waiter& waiter, void* values, std::size_t bytes, int peer, int tag);

  std::shared_ptr<Whole> whole_;
  std::shared_ptr<Fabric> fabric_;
  std::vector<int> members_;  // ranks in the whole fabric
  std::shared_ptr<AbortFlag> abort_;
  ChannelOptions options_;
  PeerChannels channels_;
  std::atomic<bool> busy_{false};
};

}  // namespace convoy
