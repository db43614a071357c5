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

/// Calls work(in, out) with copies in this machine's memory, once the stream's work so far is done.
template <class Sides, class Work>
void run_on_copies(Stream& stream, const Sides& sides, const Work& work) {
  auto& gpu = context(stream.device());
  std::vector<std::byte> in(sides.in_bytes), out(sides.out_bytes);
  if (!in.empty()) gpu.copy_out(stream, in.data(), sides.in, in.size());
  work(in.data(), out.data());
  if (!out.empty()) gpu.copy_in(stream, sides.out, out.data(), out.size());
}

}  // namespace

void HostCommunicator::all_reduce(ConstBuffer in, Buffer out, std::int64_t count,
                                  Reduction reduction, Stream& stream) {
  check_pair("all_reduce", in, out, count);
  check_reduction("all_reduce", in.dtype, reduction);
  const std::size_t bytes = bytes_of(count, in.dtype);
  queue_collective(stream, {in.data, bytes, out.data, bytes},
                   [this, count, dtype = in.dtype, reduction](const void* from, void* to) {
                     all_reduce_now(from, to, count, dtype, reduction);
                   });
}

void HostCommunicator::reduce_scatter(ConstBuffer in, Buffer out, std::int64_t count,
                                      Reduction reduction, Stream& stream) {
  check_values("reduce_scatter", in.data, count);
  const std::int64_t mine = count >= 0 ? chunk_of(count, rank(), size()).count() : 0;
  check_pair("reduce_scatter", in, out, mine);
  check_reduction("reduce_scatter", in.dtype, reduction);
  queue_collective(stream, {in.data, bytes_of(count, in.dtype), out.data, bytes_of(mine, in.dtype)},
                   [this, count, dtype = in.dtype, reduction](const void* from, void* to) {
                     reduce_scatter_now(from, to, count, dtype, reduction);
                   });
}

void HostCommunicator::all_gather(ConstBuffer in, Buffer out, std::int64_t count, Stream& stream) {
  check_pair("all_gather", in, out, count);
  const std::size_t mine = bytes_of(count, in.dtype);
  queue_collective(stream, {in.data, mine, out.data, mine * static_cast<std::size_t>(size())},
                   [this, mine](const void* from, void* to) { all_gather_now(from, to, mine); });
}

void HostCommunicator::broadcast(Buffer values, std::int64_t count, int root, Stream& stream) {
  check_values("broadcast", values.data, count);
  check_root("broadcast", root, *this);
  const std::size_t bytes = bytes_of(count, values.dtype);
  const bool gives = rank() == root;
  const Sides sides = gives ? Sides{.in = values.data, .in_bytes = bytes}
                            : Sides{.out = values.data, .out_bytes = bytes};
  queue_collective(stream, sides, [this, bytes, root, gives](const void* from, void* to) {
    // The root's values are read alone.
    broadcast_now(gives ? const_cast<void*>(from) : to, bytes, root);
  });
}

void HostCommunicator::send(ConstBuffer values, std::int64_t count, int peer, int tag,
                            Stream& stream) {
  check_values("send", values.data, count);
  check_peer("send", peer, tag, *this);
  const std::size_t bytes = bytes_of(count, values.dtype);
  queue_message(
      stream, {.in = values.data, .in_bytes = bytes},
      [this, bytes, peer, tag](const void* from, void*) { send_now(from, bytes, peer, tag); });
}

void HostCommunicator::receive(Buffer values, std::int64_t count, int peer, int tag,
                               Stream& stream) {
  check_values("receive", values.data, count);
  check_peer("receive", peer, tag, *this);
  const std::size_t bytes = bytes_of(count, values.dtype);
  queue_message(
      stream, {.out = values.data, .out_bytes = bytes},
      [this, bytes, peer, tag](const void*, void* to) { receive_now(to, bytes, peer, tag); });
}

void HostCommunicator::queue_collective(Stream& stream, const Sides& sides, HostCall work) {
  if (is_gpu(stream.device())) return run_on_copies(stream, sides, work);
  const std::lock_guard lock(mutex_);
  stream.wait(collective_);
  stream.host_call([sides, work = std::move(work)] { work(sides.in, sides.out); });
  collective_ = stream.record();
}

void HostCommunicator::queue_message(Stream& stream, const Sides& sides, HostCall work) {
  if (is_gpu(stream.device())) return run_on_copies(stream, sides, work);
  const std::lock_guard lock(mutex_);
  std::erase_if(messages_, [](const Event& event) { return event.done(); });
  stream.host_call([sides, work = std::move(work)] { work(sides.in, sides.out); });
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
