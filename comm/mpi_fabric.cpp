#include "comm/mpi_fabric.h"

#include <algorithm>
#include <compare>
#include <cstdint>
#include <map>
#include <mutex>

#include "comm/mpi_channel.h"
#include "comm/mpi_shared_channel.h"
#include "comm/thread_fabric.h"

namespace convoy {
namespace {

std::int64_t highest_tag(MPI_Comm comm) {
  void* value = nullptr;
  int found = 0;
  CONVOY_MPI(MPI_Comm_get_attr(comm, MPI_TAG_UB, &value, &found));
  return found ? *static_cast<int*>(value) : 32767;  // what every MPI has
}

struct Peer {
  int rank;
  int tag;
  auto operator<=>(const Peer&) const = default;
};

class MpiFabric final : public Fabric {
 public:
  MpiFabric(std::shared_ptr<const MpiLinks> links, std::unique_ptr<Fabric> local, int rank)
      : links_(std::move(links)), local_(std::move(local)), rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return links_->layout.workers(); }
  const char* name() const override { return "mpi"; }
  std::size_t piece_bytes() const override { return links_->shape.slot_bytes; }

  SendEnd& to(int peer, int tag) override {
    const int process = links_->layout.process_of(peer);
    if (process == links_->process) return local_->to(local_rank(peer), tag);
    const std::lock_guard<std::mutex> lock(mutex_);
    auto& end = sends_[{peer, tag}];
    if (!end) end = open_send(process, route(peer, rank_, peer, tag), tag);
    return *end;
  }

  ReceiveEnd& from(int peer, int tag) override {
    const int process = links_->layout.process_of(peer);
    if (process == links_->process) return local_->from(local_rank(peer), tag);
    const std::lock_guard<std::mutex> lock(mutex_);
    auto& end = receives_[{peer, tag}];
    if (!end) end = open_receive(process, route(peer, peer, rank_, tag));
    return *end;
  }

  bool shares_memory(int peer) const override {
    const int process = links_->layout.process_of(peer);
    return process == links_->process || links_->shares_memory[process];
  }
  HostMemory& memory() override { return local_->memory(); }

 private:
  int local_rank(int rank) const { return rank - links_->layout.first[links_->process]; }

  MpiRoute route(int peer, int from, int to, int tag) const {
    MPI_Comm comm = (tag < 0 ? links_->collectives : links_->messages).get();
    return {comm, links_->layout.process_of(peer), mpi_tag(*links_, comm, from, to, tag)};
  }

  std::unique_ptr<SendEnd> open_send(int process, const MpiRoute& route, int tag) const {
    if (links_->shares_memory[process]) {
      // A message is for a receiver who may come late; those of a collective come now.
      const auto flush = tag < 0 ? SharedSendEnd::Flush::waits : SharedSendEnd::Flush::looks;
      return std::make_unique<SharedSendEnd>(route, links_->shape, flush);
    }
    return std::make_unique<MpiSendEnd>(route, links_->shape);
  }

  std::unique_ptr<ReceiveEnd> open_receive(int process, const MpiRoute& route) const {
    if (links_->shares_memory[process]) {
      return std::make_unique<SharedReceiveEnd>(route, links_->shape);
    }
    return std::make_unique<MpiReceiveEnd>(route, links_->shape);
  }

  std::shared_ptr<const MpiLinks> links_;
  std::unique_ptr<Fabric> local_;  // the workers of this process
  int rank_;
  std::mutex mutex_;
  std::map<Peer, std::unique_ptr<SendEnd>> sends_;
  std::map<Peer, std::unique_ptr<ReceiveEnd>> receives_;
};

}  // namespace

WorkerLayout WorkerLayout::of(const std::vector<int>& workers_of_process) {
  WorkerLayout layout;
  for (int workers : workers_of_process) layout.first.push_back(layout.first.back() + workers);
  return layout;
}

int WorkerLayout::most_workers() const {
  int most = 0;
  for (int p = 0; p < processes(); ++p) most = std::max(most, workers_of(p));
  return most;
}

int WorkerLayout::process_of(int rank) const {
  const auto after = std::upper_bound(first.begin(), first.end(), rank);
  return static_cast<int>(after - first.begin()) - 1;
}

int mpi_tag(const MpiLinks& links, MPI_Comm comm, int from, int to, int tag) {
  const auto local = [&](int rank) {
    return std::int64_t{rank} - links.layout.first[links.layout.process_of(rank)];
  };
  const std::int64_t most = links.layout.most_workers();
  const std::int64_t number = tag < 0 ? -1 - std::int64_t{tag} : tag;
  const std::int64_t found = (number * most + local(from)) * most + local(to);
  const std::int64_t highest = highest_tag(comm);
  CONVOY_CHECK(
      found <= highest,
      "tag {} between workers {} and {}: this MPI has tags up to {}, which is enough for {} "
      "with {} workers in a process",
      tag, from, to, highest, highest / (most * most), most);
  return static_cast<int>(found);
}

std::vector<std::unique_ptr<Fabric>> make_mpi_fabrics(
    const std::shared_ptr<const MpiLinks>& links) {
  const int first = links->layout.first[links->process];
  auto locals = make_thread_fabrics(links->layout.workers_of(links->process), links->shape);
  std::vector<std::unique_ptr<Fabric>> fabrics;
  for (std::size_t i = 0; i < locals.size(); ++i) {
    fabrics.push_back(
        std::make_unique<MpiFabric>(links, std::move(locals[i]), first + static_cast<int>(i)));
  }
  return fabrics;
}

}  // namespace convoy
