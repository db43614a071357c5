// NCCL's interface: handles, groups, and what each call hands on.
#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <thread>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/emulator/devices.h"
#include "kernels/emulator/handle_table.h"
#include "kernels/emulator/nccl_check.h"
#include "kernels/emulator/nccl_work.h"

namespace convoy::emulator {

using nccl::Call;
using nccl::CallNote;
using nccl::Kind;

/// What stands behind a handle.
struct ncclComm : nccl::Comm {
  ncclComm(int rank, int ranks, int on_device, bool blocks)
      : Comm(rank, ranks, on_device), blocking(blocks) {}
  const bool blocking;
};

namespace {

using CommPointer = std::shared_ptr<ncclComm>;

struct QueuedCall {
  CommPointer comm;
  Call call;
  cudaStream_t stream;
};

struct QueuedInit {
  CommPointer comm;
  nccl::Address address;
};

/// The calling thread's open group.
struct Group {
  int depth = 0;
  std::vector<QueuedCall> calls;
  std::vector<QueuedInit> inits;
  ncclResult_t result = ncclSuccess;  // of the first call that was refused
  std::string last_error;
};

Group& group() {
  thread_local Group mine;
  return mine;
}

ncclResult_t refuse(ncclResult_t result, const std::string& text) {
  group().last_error = text;
  if (group().depth > 0 && group().result == ncclSuccess) group().result = result;
  return result;
}

ncclResult_t refuse(ncclComm& comm, ncclResult_t result, const std::string& text) {
  comm.note_error(result, text);
  return refuse(result, text);
}

CommPointer find(ncclComm_t comm) {
  return handles<ncclComm>().find(comm);
}

ncclResult_t no_communicator(const char* call) {
  return refuse(ncclInvalidArgument,
                fmt::format("{}: the communicator was destroyed or aborted, or is none", call));
}

// --- work ---

/// The calls of one communicator in a group, in one of its streams; the others wait for it.
ncclResult_t launch(const CommPointer& comm, std::vector<Call> calls,
                    const std::vector<cudaStream_t>& streams) {
  std::shared_ptr<EventPoint> done;
  for (std::size_t i = 1; i < streams.size(); ++i) {
    auto ready = std::make_shared<EventPoint>();
    if (!done) done = std::make_shared<EventPoint>();
    queue_work(streams[i], {[ready] { ready->reach(); }, true});
    queue_work(streams[i], {[done] { done->wait(); }, true, true});
    queue_work(streams[0], {[ready] { ready->wait(); }, true, true});
  }
  const cudaError_t error =
      comm->queue(streams[0], [comm, calls = std::move(calls)] { nccl::run_calls(*comm, calls); });
  if (done) queue_work(streams[0], {[done] { done->reach(); }, true});
  if (error == cudaSuccess) return ncclSuccess;
  return refuse(*comm, ncclUnhandledCudaError,
                fmt::format("the stream takes no work: {}", cudaGetErrorString(error)));
}

ncclResult_t launch_all(std::vector<QueuedCall> queued) {
  ncclResult_t result = ncclSuccess;
  while (!queued.empty()) {
    const CommPointer comm = queued.front().comm;
    std::vector<Call> calls;
    std::vector<cudaStream_t> streams;
    for (const QueuedCall& each : queued) {
      if (each.comm != comm) continue;
      calls.push_back(each.call);
      const bool known = std::find(streams.begin(), streams.end(), each.stream) != streams.end();
      if (!known) streams.push_back(each.stream);
    }
    std::erase_if(queued, [&](const QueuedCall& each) { return each.comm == comm; });
    const ncclResult_t one = launch(comm, std::move(calls), streams);
    if (result == ncclSuccess) result = one;
  }
  return result;
}

ncclResult_t enqueue(const Call& call, ncclComm_t handle, cudaStream_t stream) {
  const CommPointer comm = find(handle);
  if (!comm) return no_communicator(nccl::name(call.note.kind));
  if (comm->state() == ncclInProgress) {
    return refuse(*comm, ncclInvalidUsage,
                  nccl::describe(call.note) + ": the communicator is not ready yet");
  }
  if (comm->state() != ncclSuccess) return refuse(comm->state(), comm->last_error());
  if (comm->is_finalized()) {
    return refuse(*comm, ncclInvalidUsage,
                  nccl::describe(call.note) + ": the communicator was finalized");
  }
  if (const auto fault = nccl::find_fault(*comm, call, stream)) {
    return refuse(*comm, fault->result, fault->text);
  }
  if (group().depth == 0) return launch(comm, {call}, {stream});
  group().calls.push_back({comm, call, stream});
  return ncclSuccess;
}

// --- communicators ---

ncclResult_t join_all(const std::vector<QueuedInit>& inits) {
  std::vector<std::thread> threads;
  for (const QueuedInit& init : inits) {
    if (!init.comm->blocking) continue;
    threads.emplace_back([&init] { init.comm->join(init.address); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const QueuedInit& init : inits) {
    const ncclResult_t state = init.comm->state();
    if (init.comm->blocking && state != ncclSuccess) return refuse(state, init.comm->last_error());
  }
  return ncclSuccess;
}

ncclResult_t init(ncclComm_t* handle, int ranks, const ncclUniqueId& id, int rank, bool blocking) {
  if (ranks < 1 || ranks > nccl::kMostRanks || rank < 0 || rank >= ranks) {
    return refuse(ncclInvalidArgument, fmt::format("rank {} of {}: expected at most {} ranks", rank,
                                                   ranks, nccl::kMostRanks));
  }
  const auto comm = std::make_shared<ncclComm>(rank, ranks, current_device(), blocking);
  *handle = handles<ncclComm>().add(comm);
  nccl::Address address;
  std::memcpy(&address, id.internal, sizeof address);
  if (!blocking) {
    comm->join_aside(address);
    return ncclInProgress;
  }
  if (group().depth == 0) return join_all({{comm, address}});
  group().inits.push_back({comm, address});
  return ncclSuccess;
}

template <class T>
ncclResult_t read(const char* call, ncclComm_t handle, T* value, T (nccl::Comm::*getter)() const) {
  const CommPointer comm = find(handle);
  if (!comm) return no_communicator(call);
  *value = (*comm.*getter)();
  return ncclSuccess;
}

Call make_call(Kind kind, const void* send, void* receive, std::size_t count, ncclDataType_t type,
               ncclRedOp_t op, int peer, const CallSite& site) {
  return {nccl::make_note(kind, count, type, op, peer, site), send, receive};
}

}  // namespace

ncclResult_t ncclGetVersion(int* version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess:
      return "no error";
    case ncclUnhandledCudaError:
      return "unhandled cuda error";
    case ncclSystemError:
      return "unhandled system error";
    case ncclInternalError:
      return "internal error";
    case ncclInvalidArgument:
      return "invalid argument";
    case ncclInvalidUsage:
      return "invalid usage";
    case ncclRemoteError:
      return "remote process exited or there was a network error";
    case ncclInProgress:
      return "operation in progress";
  }
  return "unknown result code";
}

const char* ncclGetLastError(ncclComm_t handle) {
  const CommPointer comm = handle ? find(handle) : nullptr;
  if (comm) group().last_error = comm->last_error();
  return group().last_error.c_str();
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  try {
    const nccl::Address address = nccl::make_memory();
    std::memset(id->internal, 0, sizeof id->internal);
    std::memcpy(id->internal, &address, sizeof address);
    return ncclSuccess;
  } catch (const Error& error) {
    return refuse(ncclSystemError, error.text());
  }
}

ncclResult_t ncclCommInitRank(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank) {
  return init(comm, ranks, id, rank, true);
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  return init(comm, ranks, id, rank, !config || config->blocking != 0);
}

ncclResult_t ncclCommInitAll(ncclComm_t* comms, int devices, const int* list) {
  ncclUniqueId id;
  if (const ncclResult_t result = ncclGetUniqueId(&id); result != ncclSuccess) return result;
  const int before = current_device();
  ncclGroupStart();
  for (int i = 0; i < devices; ++i) {
    if (cudaSetDevice(list ? list[i] : i) != cudaSuccess) {
      refuse(ncclInvalidArgument, fmt::format("device {} does not exist", list ? list[i] : i));
      continue;
    }
    init(comms + i, devices, id, i, true);
  }
  cudaSetDevice(before);
  return ncclGroupEnd();
}

ncclResult_t ncclCommFinalize(ncclComm_t handle) {
  const CommPointer comm = find(handle);
  if (!comm) return no_communicator("ncclCommFinalize");
  if (comm->state() != ncclSuccess) return refuse(comm->state(), comm->last_error());
  if (comm->blocking) return comm->finalize();
  comm->finalize_aside();
  return ncclInProgress;
}

ncclResult_t ncclCommDestroy(ncclComm_t handle) {
  const CommPointer comm = find(handle);
  if (!comm) return no_communicator("ncclCommDestroy");
  if (comm->state() == ncclInProgress) {
    return refuse(*comm, ncclInvalidUsage, "ncclCommDestroy: the communicator is not ready yet");
  }
  ncclResult_t result = ncclSuccess;
  if (comm->state() != ncclSuccess) {
    comm->abort();
  } else if (!comm->is_finalized()) {
    result = comm->finalize();
  }
  handles<ncclComm>().remove(handle);
  return result;
}

ncclResult_t ncclCommAbort(ncclComm_t handle) {
  const CommPointer comm = handles<ncclComm>().remove(handle);
  if (!comm) return no_communicator("ncclCommAbort");
  comm->abort();
  return ncclSuccess;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error) {
  return read("ncclCommGetAsyncError", comm, error, &nccl::Comm::state);
}

ncclResult_t ncclCommCount(ncclComm_t comm, int* count) {
  return read("ncclCommCount", comm, count, &nccl::Comm::ranks);
}

ncclResult_t ncclCommUserRank(ncclComm_t comm, int* rank) {
  return read("ncclCommUserRank", comm, rank, &nccl::Comm::rank);
}

ncclResult_t ncclCommCuDevice(ncclComm_t comm, int* device) {
  return read("ncclCommCuDevice", comm, device, &nccl::Comm::device);
}

ncclResult_t ncclAllReduce(const void* send, void* receive, std::size_t count, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream, CallSite site) {
  return enqueue(make_call(Kind::all_reduce, send, receive, count, type, op, 0, site), comm,
                 stream);
}

ncclResult_t ncclReduce(const void* send, void* receive, std::size_t count, ncclDataType_t type,
                        ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream,
                        CallSite site) {
  return enqueue(make_call(Kind::reduce, send, receive, count, type, op, root, site), comm, stream);
}

ncclResult_t ncclBroadcast(const void* send, void* receive, std::size_t count, ncclDataType_t type,
                           int root, ncclComm_t comm, cudaStream_t stream, CallSite site) {
  return enqueue(make_call(Kind::broadcast, send, receive, count, type, ncclSum, root, site), comm,
                 stream);
}

ncclResult_t ncclReduceScatter(const void* send, void* receive, std::size_t count,
                               ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                               cudaStream_t stream, CallSite site) {
  return enqueue(make_call(Kind::reduce_scatter, send, receive, count, type, op, 0, site), comm,
                 stream);
}

ncclResult_t ncclAllGather(const void* send, void* receive, std::size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream, CallSite site) {
  return enqueue(make_call(Kind::all_gather, send, receive, count, type, ncclSum, 0, site), comm,
                 stream);
}

ncclResult_t ncclSend(const void* send, std::size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream, CallSite site) {
  return enqueue(make_call(Kind::send, send, nullptr, count, type, ncclSum, peer, site), comm,
                 stream);
}

ncclResult_t ncclRecv(void* receive, std::size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream, CallSite site) {
  return enqueue(make_call(Kind::receive, nullptr, receive, count, type, ncclSum, peer, site), comm,
                 stream);
}

ncclResult_t ncclGroupStart() {
  ++group().depth;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  Group& mine = group();
  if (mine.depth == 0) return refuse(ncclInvalidUsage, "ncclGroupEnd without ncclGroupStart");
  if (--mine.depth > 0) return ncclSuccess;
  const std::vector<QueuedInit> inits = std::exchange(mine.inits, {});
  std::vector<QueuedCall> calls = std::exchange(mine.calls, {});
  const ncclResult_t refused = std::exchange(mine.result, ncclSuccess);
  if (refused != ncclSuccess) {
    for (const QueuedInit& init : inits) init.comm->abort();
    return refused;
  }
  if (const ncclResult_t result = join_all(inits); result != ncclSuccess) return result;
  return launch_all(std::move(calls));
}

}  // namespace convoy::emulator
