// A channel of MPI messages, one a piece, between two processes. Sends leave from slots of their
// own; as many receives are posted ahead as there are slots. Requests are polled, so that an abort
// ends every wait.
#pragma once

#include <memory>
#include <vector>

#include "comm/channel.h"
#include "comm/memory_ring.h"
#include "comm/mpi_session.h"

namespace convoy {

/// Where a channel's messages go: a process of a communicator of ours, and the tag there.
struct MpiRoute {
  MPI_Comm comm = MPI_COMM_NULL;
  int process = 0;
  int tag = 0;
};

/// A request of MPI, with the wait that an abort ends.
class MpiRequest {
 public:
  MpiRequest() = default;
  ~MpiRequest();
  MpiRequest(MpiRequest&& other) noexcept;
  MpiRequest& operator=(MpiRequest&&) = delete;

  MPI_Request* address() { return &request_; }
  /// Whether the work is over, or there was none; `status` may be null.
  bool done(MPI_Status* status = nullptr);
  /// Whether MPI does not touch the memory any more; for destructors.
  bool is_over() noexcept;
  /// Ends a receive that nothing has come for. False if MPI may still write to its memory.
  bool cancel_receive() noexcept;

 private:
  MPI_Request request_ = MPI_REQUEST_NULL;
};

class MpiSendEnd final : public SendEnd {
 public:
  MpiSendEnd(const MpiRoute& route, const RingShape& shape);
  ~MpiSendEnd() override;
  std::span<std::byte> reserve(Waiter& waiter) override;
  void commit(std::size_t bytes) override;
  void flush(Waiter& waiter) override;

 private:
  std::byte* slot() { return memory_.get() + next_ * shape_.slot_bytes; }

  const MpiRoute route_;
  const RingShape shape_;
  std::unique_ptr<std::byte[]> memory_;
  std::vector<MpiRequest> requests_;
  std::size_t next_ = 0;
};

class MpiReceiveEnd final : public ReceiveEnd {
 public:
  MpiReceiveEnd(const MpiRoute& route, const RingShape& shape);
  ~MpiReceiveEnd() override;
  std::span<const std::byte> front(Waiter& waiter) override;
  void release() override;

 private:
  void post(std::size_t slot);

  const MpiRoute route_;
  const RingShape shape_;
  std::unique_ptr<std::byte[]> memory_;
  std::vector<MpiRequest> requests_;
  std::size_t next_ = 0;
  bool arrived_ = false;
  int bytes_ = 0;
};

}  // namespace convoy
