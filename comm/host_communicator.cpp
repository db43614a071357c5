#include "comm/host_communicator.h"

#include "comm/check_arguments.h"

namespace convoy {
namespace {

void check_host(const char* call, const Stream& stream) {
  CONVOY_CHECK(stream.device().type != DeviceType::cuda,
               "{}: stream of {}, but this communicator moves host memory", call,
               to_string(stream.device()));
}

void check_pair(const char* call, const ConstBuffer& in, const Buffer& out, std::int64_t count) {
  check_values(call, in.data, count);
  check_values(call, out.data, count);
  CONVOY_CHECK(in.dtype == out.dtype, "{}: input is {}, output {}, expected the same type", call,
               name(in.dtype), name(out.dtype));
}

std::size_t bytes_of(std::int64_t count, DType dtype) {
  return static_cast<std::size_t>(count) * size_of(dtype);
}

}  // namespace

void HostCommunicator::all_reduce(ConstBuffer in, Buffer out, std::int64_t count,
                                  Reduction reduction, Stream& stream) {
  check_host("all_reduce", stream);
  check_pair("all_reduce", in, out, count);
  check_reduction("all_reduce", in.dtype, reduction);
  queue_collective(stream, [this, in, out, count, reduction] {
    all_reduce_now(in.data, out.data, count, in.dtype, reduction);
  });
}

void HostCommunicator::reduce_scatter(ConstBuffer in, Buffer out, std::int64_t count,
                                      Reduction reduction, Stream& stream) {
  check_host("reduce_scatter", stream);
  check_values("reduce_scatter", in.data, count);
  check_pair("reduce_scatter", in, out, count >= 0 ? chunk_of(count, rank(), size()).count() : 0);
  check_reduction("reduce_scatter", in.dtype, reduction);
  queue_collective(stream, [this, in, out, count, reduction] {
    reduce_scatter_now(in.data, out.data, count, in.dtype, reduction);
  });
}

void HostCommunicator::all_gather(ConstBuffer in, Buffer out, std::int64_t count, Stream& stream) {
  check_host("all_gather", stream);
  check_pair("all_gather", in, out, count);
  queue_collective(stream, [this, in, out, count] {
    all_gather_now(in.data, out.data, bytes_of(count, in.dtype));
  });
}

void HostCommunicator::broadcast(Buffer values, std::int64_t count, int root, Stream& stream) {
  check_host("broadcast", stream);
  check_values("broadcast", values.data, count);
  check_root("broadcast", root, *this);
  queue_collective(stream, [this, values, count, root] {
    broadcast_now(values.data, bytes_of(count, values.dtype), root);
  });
}

void HostCommunicator::send(ConstBuffer values, std::int64_t count, int peer, int tag,
                            Stream& stream) {
  check_host("send", stream);
  check_values("send", values.data, count);
  check_peer("send", peer, tag, *this);
  queue_message(stream, [this, values, count, peer, tag] {
    send_now(values.data, bytes_of(count, values.dtype), peer, tag);
  });
}

void HostCommunicator::receive(Buffer values, std::int64_t count, int peer, int tag,
                               Stream& stream) {
  check_host("receive", stream);
  check_values("receive", values.data, count);
  check_peer("receive", peer, tag, *this);
  queue_message(stream, [this, values, count, peer, tag] {
    receive_now(values.data, bytes_of(count, values.dtype), peer, tag);
  });
}

void HostCommunicator::queue_collective(Stream& stream, std::function<void()> work) {
  const std::lock_guard lock(mutex_);
  stream.wait(collective_);
  stream.host_call(std::move(work));
  collective_ = stream.record();
}

void HostCommunicator::queue_message(Stream& stream, std::function<void()> work) {
  const std::lock_guard lock(mutex_);
  std::erase_if(messages_, [](const Event& event) { return event.done(); });
  stream.host_call(std::move(work));
  messages_.push_back(stream.record());
}

void HostCommunicator::wait_for_queued() {
  std::unique_lock lock(mutex_);
  const Event collective = collective_;
  const std::vector<Event> messages = messages_;
  lock.unlock();
  collective.wait();
  for (const Event& event : messages) event.wait();
}

std::unique_ptr<Communicator> HostCommunicator::split(int color, int key) {
  wait_for_queued();
  return split_host(color, key);
}

}  // namespace convoy
