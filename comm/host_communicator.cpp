#include "comm/host_communicator.h"

#include "comm/check_arguments.h"
#include "comm/nccl_devices.h"
#include "kernels/base/context.h"

namespace convoy {
namespace {

void check_pair(const char* call, const ConstBuffer& in, const Buffer& out, std::int64_t count) {
  check_values(call, in.data, count);
  check_values(call, out.data, count);
  CONVOY_CHECK(in.dtype == out.dtype, "{}: input is {}, output {}, expected the same type", call,
               name(in.dtype), name(out.dtype));
}

std::size_t bytes_of(std::int64_t count, DType dtype) {
  return static_cast<std::size_t>(count) * size_of(dtype);
}

/// The values of a GPU's buffer in this machine's memory, once the stream's work so far is done.
std::vector<std::byte> fetched(Stream& stream, const ConstBuffer& values, std::int64_t count) {
  std::vector<std::byte> host(bytes_of(count, values.dtype));
  if (!host.empty())
    context(stream.device()).copy_out(stream, host.data(), values.data, host.size());
  return host;
}

void put_back(Stream& stream, const Buffer& values, const std::vector<std::byte>& host) {
  if (!host.empty())
    context(stream.device()).copy_in(stream, values.data, host.data(), host.size());
}

}  // namespace

void HostCommunicator::all_reduce(ConstBuffer in, Buffer out, std::int64_t count,
                                  Reduction reduction, Stream& stream) {
  check_pair("all_reduce", in, out, count);
  check_reduction("all_reduce", in.dtype, reduction);
  if (is_gpu(stream.device())) {
    std::vector<std::byte> host = fetched(stream, in, count);
    all_reduce_now(host.data(), host.data(), count, in.dtype, reduction);
    return put_back(stream, out, host);
  }
  queue_collective(stream, [this, in, out, count, reduction] {
    all_reduce_now(in.data, out.data, count, in.dtype, reduction);
  });
}

void HostCommunicator::reduce_scatter(ConstBuffer in, Buffer out, std::int64_t count,
                                      Reduction reduction, Stream& stream) {
  check_values("reduce_scatter", in.data, count);
  check_pair("reduce_scatter", in, out, count >= 0 ? chunk_of(count, rank(), size()).count() : 0);
  check_reduction("reduce_scatter", in.dtype, reduction);
  if (is_gpu(stream.device())) {
    const std::vector<std::byte> all = fetched(stream, in, count);
    std::vector<std::byte> mine(bytes_of(chunk_of(count, rank(), size()).count(), in.dtype));
    reduce_scatter_now(all.data(), mine.data(), count, in.dtype, reduction);
    return put_back(stream, out, mine);
  }
  queue_collective(stream, [this, in, out, count, reduction] {
    reduce_scatter_now(in.data, out.data, count, in.dtype, reduction);
  });
}

void HostCommunicator::all_gather(ConstBuffer in, Buffer out, std::int64_t count, Stream& stream) {
  check_pair("all_gather", in, out, count);
  if (is_gpu(stream.device())) {
    const std::vector<std::byte> mine = fetched(stream, in, count);
    std::vector<std::byte> all(mine.size() * static_cast<std::size_t>(size()));
    all_gather_now(mine.data(), all.data(), mine.size());
    return put_back(stream, out, all);
  }
  queue_collective(stream, [this, in, out, count] {
    all_gather_now(in.data, out.data, bytes_of(count, in.dtype));
  });
}

void HostCommunicator::broadcast(Buffer values, std::int64_t count, int root, Stream& stream) {
  check_values("broadcast", values.data, count);
  check_root("broadcast", root, *this);
  if (is_gpu(stream.device())) {
    std::vector<std::byte> host(bytes_of(count, values.dtype));
    if (rank() == root) host = fetched(stream, values, count);
    broadcast_now(host.data(), host.size(), root);
    return rank() == root ? void() : put_back(stream, values, host);
  }
  queue_collective(stream, [this, values, count, root] {
    broadcast_now(values.data, bytes_of(count, values.dtype), root);
  });
}

void HostCommunicator::send(ConstBuffer values, std::int64_t count, int peer, int tag,
                            Stream& stream) {
  check_values("send", values.data, count);
  check_peer("send", peer, tag, *this);
  if (is_gpu(stream.device())) {
    const std::vector<std::byte> host = fetched(stream, values, count);
    return send_now(host.data(), host.size(), peer, tag);
  }
  queue_message(stream, [this, values, count, peer, tag] {
    send_now(values.data, bytes_of(count, values.dtype), peer, tag);
  });
}

void HostCommunicator::receive(Buffer values, std::int64_t count, int peer, int tag,
                               Stream& stream) {
  check_values("receive", values.data, count);
  check_peer("receive", peer, tag, *this);
  if (is_gpu(stream.device())) {
    std::vector<std::byte> host(bytes_of(count, values.dtype));
    receive_now(host.data(), host.size(), peer, tag);
    return put_back(stream, values, host);
  }
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
