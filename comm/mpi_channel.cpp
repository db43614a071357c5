#include "comm/mpi_channel.h"

#include <algorithm>
#include <utility>

#include "comm/waiter.h"

namespace convoy {
namespace {

std::unique_ptr<std::byte[]> memory_of(const RingShape& shape) {
  return std::make_unique_for_overwrite<std::byte[]>(shape.slots * shape.slot_bytes);
}

bool all_done(std::vector<MpiRequest>& requests) {
  return std::all_of(requests.begin(), requests.end(),
                     [](auto& request) { return request.done(); });
}

}  // namespace

MpiRequest::~MpiRequest() {
  if (request_ != MPI_REQUEST_NULL && MpiSession::runs()) MPI_Request_free(&request_);
}

MpiRequest::MpiRequest(MpiRequest&& other) noexcept
    : request_(std::exchange(other.request_, MPI_REQUEST_NULL)) {}

bool MpiRequest::done(MPI_Status* status) {
  int flag = 1;
  if (request_ != MPI_REQUEST_NULL) {
    CONVOY_MPI(MPI_Test(&request_, &flag, status ? status : MPI_STATUS_IGNORE));
  }
  return flag != 0;
}

bool MpiRequest::is_over() noexcept {
  if (request_ == MPI_REQUEST_NULL) return true;
  if (!MpiSession::runs()) return false;
  // At once, unless half a message has moved and the other side is gone.
  constexpr int kTries = 1000;
  int done = 0;
  for (int i = 0; i < kTries && !done; ++i) MPI_Test(&request_, &done, MPI_STATUS_IGNORE);
  return done != 0;
}

bool MpiRequest::cancel_receive() noexcept {
  if (request_ != MPI_REQUEST_NULL && MpiSession::runs()) MPI_Cancel(&request_);
  return is_over();
}

MpiSendEnd::MpiSendEnd(const MpiRoute& route, const RingShape& shape)
    : route_(route), shape_(shape), memory_(memory_of(shape)), requests_(shape.slots) {}

MpiSendEnd::~MpiSendEnd() {
  // A send that nobody has taken (the group has failed): its memory stays MPI's.
  if (!std::all_of(requests_.begin(), requests_.end(),
                   [](MpiRequest& r) { return *r.address() == MPI_REQUEST_NULL; })) {
    static_cast<void>(memory_.release());
  }
}

std::span<std::byte> MpiSendEnd::reserve(Waiter& waiter) {
  waiter.until([this] { return requests_[next_].done(); });
  return {slot(), shape_.slot_bytes};
}

void MpiSendEnd::commit(std::size_t bytes) {
  CONVOY_MPI(MPI_Isend(slot(), static_cast<int>(bytes), MPI_BYTE, route_.process, route_.tag,
                       route_.comm, requests_[next_].address()));
  next_ = (next_ + 1) % requests_.size();
}

void MpiSendEnd::flush(Waiter& waiter) {
  waiter.until([this] { return all_done(requests_); });
}

MpiReceiveEnd::MpiReceiveEnd(const MpiRoute& route, const RingShape& shape)
    : route_(route), shape_(shape), memory_(memory_of(shape)), requests_(shape.slots) {
  for (std::size_t slot = 0; slot < requests_.size(); ++slot) post(slot);
}

MpiReceiveEnd::~MpiReceiveEnd() {
  bool ended = true;
  for (MpiRequest& request : requests_) ended = request.cancel_receive() && ended;
  if (!ended) static_cast<void>(memory_.release());  // it stays MPI's
}

void MpiReceiveEnd::post(std::size_t slot) {
  CONVOY_MPI(MPI_Irecv(memory_.get() + slot * shape_.slot_bytes,
                       static_cast<int>(shape_.slot_bytes), MPI_BYTE, route_.process, route_.tag,
                       route_.comm, requests_[slot].address()));
}

std::span<const std::byte> MpiReceiveEnd::front(Waiter& waiter) {
  if (!arrived_) {
    MPI_Status status;
    waiter.until([&] { return requests_[next_].done(&status); });
    CONVOY_MPI(MPI_Get_count(&status, MPI_BYTE, &bytes_));
    arrived_ = true;
  }
  return {memory_.get() + next_ * shape_.slot_bytes, static_cast<std::size_t>(bytes_)};
}

void MpiReceiveEnd::release() {
  post(next_);
  next_ = (next_ + 1) % requests_.size();
  arrived_ = false;
}

}  // namespace convoy
