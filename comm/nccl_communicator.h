// The communicator over NCCL, compiled once for each namespace of GPUs.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "comm/nccl_devices.h"
#include "comm/nccl_handle.h"

namespace convoy::CONVOY_GPU {

/// See NcclCommunicator. One thread at a time makes calls; abort() may come from any.
class GpuCommunicator final : public NcclCommunicator {
 public:
  /// `control`: those who belong to it; it carries the unique id and what messages say of
  /// themselves. Collective; blocks.
  GpuCommunicator(std::unique_ptr<HostCommunicator> control, const Device& device,
                  const NcclOptions& options);
  /// Waits for its own work; parts from the others without waiting for them.
  ~GpuCommunicator() override;

  int rank() const override { return control_->rank(); }
  int size() const override { return control_->size(); }
  const char* name() const override { return "nccl"; }

  void all_reduce(ConstBuffer in, Buffer out, std::int64_t count, Reduction reduction,
                  Stream& stream) override;
  void reduce_scatter(ConstBuffer in, Buffer out, std::int64_t count, Reduction reduction,
                      Stream& stream) override;
  void all_gather(ConstBuffer in, Buffer out, std::int64_t count, Stream& stream) override;
  void broadcast(Buffer values, std::int64_t count, int root, Stream& stream) override;
  void send(ConstBuffer values, std::int64_t count, int peer, int tag, Stream& stream) override;
  void receive(Buffer values, std::int64_t count, int peer, int tag, Stream& stream) override;
  void barrier() override;
  std::unique_ptr<Communicator> split(int color, int key) override;
  void abort(const Error& why) override { watch_->raise(why); }
  void begin_messages() override;
  void end_messages() override;

 private:
  using Calls = std::function<ncclResult_t(ncclComm_t)>;
  /// A message that is to be queued.
  struct Message {
    bool sends;
    const void* sent;
    void* received;
    std::int64_t count;
    DType dtype;
    int peer;
    int tag;
    Stream* stream;
  };

  void check_stream(const char* call, const Stream& stream) const;
  void queue(const char* what, WaitIn kind, Stream& stream, const Calls& calls);
  void begin(WaitIn kind, Stream& stream);
  void end(Stream& stream);
  void queue_messages(const std::vector<Message>& messages);
  void tell(const Message& message);
  void hear(const Message& message);
  void check_gpus() const;
  void wait_for_queued() const;

  std::shared_ptr<HostCommunicator> control_;  // shared with queued work
  const std::shared_ptr<AbortFlag> flag_;
  const Device device_;
  const NcclOptions options_;
  const int unwinding_;
  std::shared_ptr<NcclWatch> watch_;
  std::shared_ptr<NcclHandle> handle_;
  Event last_;  // the end of what was queued last
  bool in_group_ = false;
  std::vector<Message> group_;
};

}  // namespace convoy::CONVOY_GPU
