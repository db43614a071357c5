#include "comm/mpi_shared_channel.h"

#include "comm/waiter.h"

namespace convoy {

SharedSendEnd::SharedSendEnd(const MpiRoute& route, const RingShape& shape, Flush flush)
    : memory_(SharedMemory::make(MemoryRing::bytes(shape))),
      ring_(*MemoryRing::make(memory_.data(), shape)),
      offer_(std::make_unique<SharedMemoryAddress>(memory_.address())),
      flush_(flush) {
  CONVOY_MPI(MPI_Isend(offer_.get(), sizeof *offer_, MPI_BYTE, route.process, route.tag, route.comm,
                       sent_.address()));
}

SharedSendEnd::~SharedSendEnd() {
  if (!sent_.is_over()) static_cast<void>(offer_.release());
}

void SharedSendEnd::flush(Waiter& waiter) {
  if (opened_) return;
  const auto opened = [this] { return sent_.done() && memory_.opened(); };
  if (flush_ == Flush::waits) waiter.until(opened);
  if (!opened()) return;
  memory_.close_descriptor();
  opened_ = true;
}

SharedReceiveEnd::SharedReceiveEnd(const MpiRoute& route, const RingShape& shape)
    : route_(route), shape_(shape), offer_(std::make_unique<SharedMemoryAddress>()) {
  CONVOY_MPI(MPI_Irecv(offer_.get(), sizeof *offer_, MPI_BYTE, route.process, route.tag, route.comm,
                       arrival_.address()));
}

SharedReceiveEnd::~SharedReceiveEnd() {
  if (!arrival_.cancel_receive()) static_cast<void>(offer_.release());
}

void SharedReceiveEnd::open(Waiter& waiter) {
  waiter.until([this] { return arrival_.done(); });
  auto memory = SharedMemory::open(*offer_, MemoryRing::bytes(shape_));
  if (!memory) {
    CONVOY_FAIL(communication, "process {} (pid {}) does not let this one open its shared memory",
                route_.process, offer_->pid);
  }
  memory_.emplace(std::move(*memory));
  ring_.emplace(*MemoryRing::at(memory_->data()));
}

std::span<const std::byte> SharedReceiveEnd::front(Waiter& waiter) {
  if (!ring_) open(waiter);
  return ring_->front(waiter);
}

}  // namespace convoy
