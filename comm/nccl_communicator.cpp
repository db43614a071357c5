#include "comm/nccl_communicator.h"

#include <unistd.h>

#include <cstring>
#include <exception>

#include "comm/check_arguments.h"
#include "comm/host_values.h"
#include "kernels/cuda/check.h"
#include "kernels/cuda/gpu_stream.h"

namespace convoy::CONVOY_GPU {
namespace {

constexpr int kNoteTag = 0;  // of what a message says of itself, on the host

/// That goes with each message: NCCL carries neither.
struct MessageNote {
  std::int64_t bytes;
  std::int64_t tag;
};

ncclDataType_t type_of(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return ncclFloat32;
    case DType::f64:
      return ncclFloat64;
    case DType::bf16:
      return ncclBfloat16;
    case DType::i64:
      return ncclInt64;
    case DType::i32:
      return ncclInt32;
    case DType::u8:
      return ncclUint8;
  }
  CONVOY_FAIL(internal, "nccl: no such type");
}

ncclRedOp_t op_of(Reduction reduction) {
  if (reduction == Reduction::mean) return ncclAvg;
  return reduction == Reduction::max ? ncclMax : ncclSum;
}

std::size_t elements(std::int64_t count) {
  return static_cast<std::size_t>(count);
}

std::int64_t bytes_of(std::int64_t count, DType dtype) {
  return count * static_cast<std::int64_t>(size_of(dtype));
}

void check_pair(const char* call, const ConstBuffer& in, std::int64_t in_count, const Buffer& out,
                std::int64_t out_count) {
  check_values(call, in.data, in_count);
  check_values(call, out.data, out_count);
  CONVOY_CHECK(in.dtype == out.dtype, "{}: input is {}, output {}, expected the same type", call,
               convoy::name(in.dtype), convoy::name(out.dtype));
}

ncclUniqueId shared_id(HostCommunicator& control) {
  ncclUniqueId id = {};
  ncclResult_t result = ncclSuccess;
  if (control.rank() == 0) result = ncclGetUniqueId(&id);
  // The others must not wait for an id that does not come.
  if (any_of(control, result != ncclSuccess)) {
    if (control.rank() == 0) throw nccl_error("unique id", result, nullptr);
    CONVOY_FAIL(communication, "nccl: rank 0 got no unique id");
  }
  control.broadcast_now(&id, sizeof id, 0);
  return id;
}

/// Which GPU of which machine a device is.
std::string gpu_name(const Device& device) {
  char host[256] = {};
  gethostname(host, sizeof host - 1);
  cudaDeviceProp properties;
  check(cudaGetDeviceProperties(&properties, device.index));
  std::string text = fmt::format("{} ", host);
  for (const char byte : properties.uuid.bytes) {
    text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  }
  return text;
}

}  // namespace

GpuCommunicator::GpuCommunicator(std::unique_ptr<HostCommunicator> control, const Device& device,
                                 const NcclOptions& options)
    : control_(std::move(control)),
      flag_(control_->abort_flag()),
      device_(device),
      options_(options),
      unwinding_(std::uncaught_exceptions()),
      watch_(NcclWatch::of(flag_)) {
  check_gpus();
  const ncclUniqueId id = shared_id(*control_);
  handle_ = std::make_shared<NcclHandle>(id, rank(), size(), device_);
  const WaitScope wait(control_->board(), WaitIn::barrier);
  handle_->wait_until_ready(*flag_, options_.timeout);
  watch_->add(handle_);
}

GpuCommunicator::~GpuCommunicator() {
  if (flag_->raised() || std::uncaught_exceptions() > unwinding_) {
    handle_->abort();
    return;
  }
  wait_for_queued();
  if (!flag_->raised()) watch_->part(std::move(handle_));
}

void GpuCommunicator::check_gpus() const {
  const std::vector<std::string> gpus = gather_texts(*control_, gpu_name(device_));
  const std::vector<std::string> devices = gather_texts(*control_, to_string(device_));
  for (std::size_t a = 0; a < gpus.size(); ++a) {
    for (std::size_t b = a + 1; b < gpus.size(); ++b) {
      CONVOY_CHECK(gpus[a] != gpus[b],
                   "nccl: ranks {} ({}) and {} ({}) share one GPU: expected one each", a,
                   devices[a], b, devices[b]);
    }
  }
}

void GpuCommunicator::check_stream(const char* call, const Stream& stream) const {
  CONVOY_CHECK(stream.device() == device_, "{}: stream of {}, but this communicator is of {}", call,
               to_string(stream.device()), to_string(device_));
}

void GpuCommunicator::begin(WaitIn kind, Stream& stream) {
  if (flag_->raised()) flag_->rethrow();
  stream.wait(last_);
  stream.host_call([board = control_->board(), kind] {
    if (board) board->begin_wait(kind);
  });
}

/// After an abort the work ends as if it had been done: what comes behind it must hear of that.
void GpuCommunicator::end(Stream& stream) {
  stream.host_call([board = control_->board(), flag = flag_] {
    if (board) board->end_wait();
    if (flag->raised()) flag->rethrow();
  });
  last_ = stream.record();
}

void GpuCommunicator::queue(const char* what, WaitIn kind, Stream& stream, const Calls& calls) {
  begin(kind, stream);
  try {
    handle(stream);  // makes the device the thread's own
    handle_->call(what, *flag_, calls);
  } catch (...) {
    end(stream);
    throw;
  }
  end(stream);
}

void GpuCommunicator::all_reduce(ConstBuffer in, Buffer out, std::int64_t count,
                                 Reduction reduction, Stream& stream) {
  check_stream("all_reduce", stream);
  check_pair("all_reduce", in, count, out, count);
  check_reduction("all_reduce", in.dtype, reduction);
  check_apart("all_reduce", in.data, bytes_of(count, in.dtype), out.data,
              bytes_of(count, in.dtype));
  queue("all_reduce", WaitIn::reduce, stream, [&](ncclComm_t comm) {
    return ncclAllReduce(in.data, out.data, elements(count), type_of(in.dtype), op_of(reduction),
                         comm, handle(stream));
  });
}

// NCCL scatters equal parts. Ours may differ by one element: each is a sum that one rank gets.
void GpuCommunicator::reduce_scatter(ConstBuffer in, Buffer out, std::int64_t count,
                                     Reduction reduction, Stream& stream) {
  check_stream("reduce_scatter", stream);
  check_values("reduce_scatter", in.data, count);
  check_pair("reduce_scatter", in, count, out, chunk_of(count, rank(), size()).count());
  check_reduction("reduce_scatter", in.dtype, reduction);
  const auto* values = static_cast<const std::byte*>(in.data);
  const auto part_of = [&](int owner) {
    return values + bytes_of(chunk_of(count, owner, size()).begin, in.dtype);
  };
  CONVOY_CHECK(count == 0 || size() == 1 || out.data == part_of(rank()) || in.data != out.data,
               "reduce_scatter: output is the start of the input, expected this rank's chunk of it "
               "or another buffer");
  const ncclDataType_t type = type_of(in.dtype);
  const ncclRedOp_t op = op_of(reduction);
  queue("reduce_scatter", WaitIn::reduce, stream, [&](ncclComm_t comm) {
    const cudaStream_t on = handle(stream);
    if (count % size() == 0) {
      return ncclReduceScatter(in.data, out.data, elements(count / size()), type, op, comm, on);
    }
    ncclGroupStart();
    ncclResult_t result = ncclSuccess;
    for (int owner = 0; owner < size() && result == ncclSuccess; ++owner) {
      const std::int64_t part = chunk_of(count, owner, size()).count();
      if (part == 0) continue;
      void* target = owner == rank() ? out.data : nullptr;
      result = ncclReduce(part_of(owner), target, elements(part), type, op, owner, comm, on);
    }
    const ncclResult_t ended = ncclGroupEnd();
    return result == ncclSuccess || result == ncclInProgress ? ended : result;
  });
}

void GpuCommunicator::all_gather(ConstBuffer in, Buffer out, std::int64_t count, Stream& stream) {
  check_stream("all_gather", stream);
  check_pair("all_gather", in, count, out, count);
  queue("all_gather", WaitIn::gather, stream, [&](ncclComm_t comm) {
    return ncclAllGather(in.data, out.data, elements(count), type_of(in.dtype), comm,
                         handle(stream));
  });
}

void GpuCommunicator::broadcast(Buffer values, std::int64_t count, int root, Stream& stream) {
  check_stream("broadcast", stream);
  check_values("broadcast", values.data, count);
  check_root("broadcast", root, *this);
  queue("broadcast", WaitIn::broadcast, stream, [&](ncclComm_t comm) {
    return ncclBroadcast(values.data, values.data, elements(count), type_of(values.dtype), root,
                         comm, handle(stream));
  });
}

void GpuCommunicator::send(ConstBuffer values, std::int64_t count, int peer, int tag,
                           Stream& stream) {
  check_stream("send", stream);
  check_values("send", values.data, count);
  check_peer("send", peer, tag, *this);
  const Message message{true, values.data, nullptr, count, values.dtype, peer, tag, &stream};
  in_group_ ? group_.push_back(message) : queue_messages({message});
}

void GpuCommunicator::receive(Buffer values, std::int64_t count, int peer, int tag,
                              Stream& stream) {
  check_stream("receive", stream);
  check_values("receive", values.data, count);
  check_peer("receive", peer, tag, *this);
  const Message message{false, nullptr, values.data, count, values.dtype, peer, tag, &stream};
  in_group_ ? group_.push_back(message) : queue_messages({message});
}

void GpuCommunicator::begin_messages() {
  CONVOY_CHECK(!in_group_, "nccl: begin_messages() twice");
  in_group_ = true;
}

void GpuCommunicator::end_messages() {
  CONVOY_CHECK(in_group_, "nccl: end_messages() without begin_messages()");
  in_group_ = false;
  if (!group_.empty()) queue_messages(std::exchange(group_, {}));
}

/// In stream order, before the message itself.
void GpuCommunicator::tell(const Message& message) {
  const MessageNote note{bytes_of(message.count, message.dtype), message.tag};
  message.stream->host_call([control = control_, peer = message.peer, note] {
    control->send_now(&note, sizeof note, peer, kNoteTag);
  });
}

/// After the message, when the sender has long told of it.
void GpuCommunicator::hear(const Message& message) {
  const MessageNote expected{bytes_of(message.count, message.dtype), message.tag};
  message.stream->host_call([control = control_, peer = message.peer, expected] {
    MessageNote note;
    control->receive_now(&note, sizeof note, peer, kNoteTag);
    if (note.bytes == expected.bytes && note.tag == expected.tag) return;
    CONVOY_FAIL(communication,
                "receive: message of {} bytes from rank {} with tag {}, {} bytes with tag {} "
                "expected: NCCL's messages come in the order in which they were sent",
                note.bytes, peer, note.tag, expected.bytes, expected.tag);
  });
}

void GpuCommunicator::queue_messages(const std::vector<Message>& messages) {
  for (const Message& message : messages) {
    begin(WaitIn::message, *message.stream);
    if (message.sends) tell(message);
  }
  const auto calls = [&](ncclComm_t comm) {
    ncclGroupStart();
    ncclResult_t result = ncclSuccess;
    for (const Message& message : messages) {
      if (message.count == 0 || (result != ncclSuccess && result != ncclInProgress)) continue;
      const std::size_t count = elements(message.count);
      const ncclDataType_t type = type_of(message.dtype);
      const cudaStream_t on = handle(*message.stream);
      result = message.sends ? ncclSend(message.sent, count, type, message.peer, comm, on)
                             : ncclRecv(message.received, count, type, message.peer, comm, on);
    }
    const ncclResult_t ended = ncclGroupEnd();
    return result == ncclSuccess || result == ncclInProgress ? ended : result;
  };
  std::exception_ptr failure;
  try {
    handle_->call("message", *flag_, calls);
  } catch (...) {
    failure = std::current_exception();
  }
  for (const Message& message : messages) {
    if (!message.sends && !failure) hear(message);
    end(*message.stream);
  }
  if (failure) std::rethrow_exception(failure);
}

void GpuCommunicator::wait_for_queued() const {
  last_.wait();
}

void GpuCommunicator::barrier() {
  control_->barrier();
}

std::unique_ptr<Communicator> GpuCommunicator::split(int color, int key) {
  wait_for_queued();
  auto control = control_->split_host(color, key);
  if (!control) return nullptr;
  return std::make_unique<GpuCommunicator>(std::move(control), device_, options_);
}

std::unique_ptr<NcclCommunicator> make_nccl(HostCommunicator& group, const Device& device,
                                            const NcclOptions& options) {
  return std::make_unique<GpuCommunicator>(group.split_host(0, group.rank()), device, options);
}

int nccl_version() {
  int version = 0;
  const ncclResult_t result = ncclGetVersion(&version);
  if (result != ncclSuccess) throw nccl_error("version", result, nullptr);
  return version;
}

}  // namespace convoy::CONVOY_GPU
