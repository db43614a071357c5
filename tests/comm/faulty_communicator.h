// A communicator whose messages go wrong on their way.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "comm/host_communicator.h"

namespace convoy::testing {

/// All is done by `right`, but what send_aside() sends passes through `fault` first.
class FaultyCommunicator final : public HostCommunicator {
 public:
  /// Changes a message; false loses it.
  using Fault = std::function<bool(std::vector<std::byte>& message)>;

  FaultyCommunicator(HostCommunicator& right, Fault fault)
      : right_(right), fault_(std::move(fault)) {}
  int rank() const override { return right_.rank(); }
  int size() const override { return right_.size(); }
  const char* name() const override { return right_.name(); }
  void all_reduce_now(const void* in, void* out, std::int64_t count, DType dtype,
                      Reduction reduction) override {
    right_.all_reduce_now(in, out, count, dtype, reduction);
  }
  void reduce_scatter_now(const void* in, void* out, std::int64_t count, DType dtype,
                          Reduction reduction) override {
    right_.reduce_scatter_now(in, out, count, dtype, reduction);
  }
  void all_gather_now(const void* in, void* out, std::size_t bytes) override {
    right_.all_gather_now(in, out, bytes);
  }
  void broadcast_now(void* values, std::size_t bytes, int root) override {
    right_.broadcast_now(values, bytes, root);
  }
  void send_now(const void* values, std::size_t bytes, int peer, int tag) override {
    right_.send_now(values, bytes, peer, tag);
  }
  void receive_now(void* values, std::size_t bytes, int peer, int tag) override {
    right_.receive_now(values, bytes, peer, tag);
  }
  void send_aside(const void* values, std::size_t bytes, int peer, int tag,
                  const SideWait& wait) override {
    const auto* first = static_cast<const std::byte*>(values);
    std::vector<std::byte> message(first, first + bytes);
    if (fault_(message)) right_.send_aside(message.data(), message.size(), peer, tag, wait);
  }
  void receive_aside(void* values, std::size_t bytes, int peer, int tag,
                     const SideWait& wait) override {
    right_.receive_aside(values, bytes, peer, tag, wait);
  }
  ProgressBoard* board() const override { return right_.board(); }
  std::shared_ptr<AbortFlag> abort_flag() const override { return right_.abort_flag(); }
  void barrier() override { right_.barrier(); }
  std::unique_ptr<HostCommunicator> split_host(int color, int key) override {
    return right_.split_host(color, key);
  }
  void abort(const Error& why) override { right_.abort(why); }

 private:
  HostCommunicator& right_;
  Fault fault_;
};

}  // namespace convoy::testing
