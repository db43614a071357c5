#include "kernels/emulator/nccl_check.h"

#include <fmt/core.h>

#include "kernels/emulator/device_memory.h"
#include "kernels/emulator/handle_table.h"

namespace convoy::emulator::nccl {
namespace {

/// A call's input and output in bytes; null where this rank has none.
struct Extents {
  const std::byte* in;
  std::size_t in_bytes;
  std::byte* out;
  std::size_t out_bytes;
};

Extents extents_of(const Comm& comm, const Call& call) {
  const std::size_t bytes = call.note.count * size_of(static_cast<ncclDataType_t>(call.note.type));
  const auto ranks = static_cast<std::size_t>(comm.ranks());
  const bool is_root = call.note.peer == comm.rank();
  Extents extents{static_cast<const std::byte*>(call.send), bytes,
                  static_cast<std::byte*>(call.receive), bytes};
  if (call.note.kind == Kind::reduce_scatter) extents.in_bytes *= ranks;
  if (call.note.kind == Kind::all_gather) extents.out_bytes *= ranks;
  if (call.note.kind == Kind::receive || (call.note.kind == Kind::broadcast && !is_root)) {
    extents.in = nullptr;
    extents.in_bytes = 0;
  }
  if (call.note.kind == Kind::send || (call.note.kind == Kind::reduce && !is_root)) {
    extents.out = nullptr;
    extents.out_bytes = 0;
  }
  return extents;
}

std::optional<Trouble> check_buffer(const Comm& comm, const char* which, const std::byte* data,
                                    std::size_t bytes) {
  if (bytes == 0) return std::nullopt;
  if (!data) return Trouble{ncclInvalidArgument, fmt::format("{} is null", which)};
  if (owner_of(data) != comm.device()) {
    return Trouble{ncclInvalidArgument,
                   fmt::format("{} is {}, the communicator's rank {} is on {}", which,
                               describe_pointer(data), comm.rank(), owner_name(comm.device()))};
  }
  const auto allocation = lookup(data);
  const bool whole = allocation && !allocation->freed && data >= allocation->data &&
                     data + bytes <= allocation->data + allocation->bytes;
  if (whole) return std::nullopt;
  return Trouble{ncclInvalidArgument, fmt::format("{} of {} bytes is {}: not memory in use", which,
                                                  bytes, describe_pointer(data))};
}

/// Where the output lies if the call is in place.
const std::byte* place_of_output(const Comm& comm, const Call& call, const Extents& extents) {
  const auto rank = static_cast<std::size_t>(comm.rank());
  if (call.note.kind == Kind::reduce_scatter) return extents.in + rank * extents.out_bytes;
  return extents.in;
}

std::optional<Trouble> check_overlap(const Comm& comm, const Call& call, const Extents& extents) {
  if (!extents.in || !extents.out) return std::nullopt;
  if (extents.in + extents.in_bytes <= extents.out ||
      extents.out + extents.out_bytes <= extents.in) {
    return std::nullopt;
  }
  const auto rank = static_cast<std::size_t>(comm.rank());
  const bool in_place = call.note.kind == Kind::all_gather
                            ? extents.in == extents.out + rank * extents.in_bytes
                            : extents.out == place_of_output(comm, call, extents);
  if (in_place) return std::nullopt;
  return Trouble{ncclInvalidArgument,
                 "input and output overlap, and not in the way of an operation in place"};
}

std::optional<Trouble> check_stream(const Comm& comm, cudaStream_t handle) {
  const auto stream = handles<EmulatedStream>().find(handle);
  if (!stream) return Trouble{ncclInvalidArgument, "the stream was destroyed, or is none"};
  const int device = stream->device().index();
  if (device == comm.device()) return std::nullopt;
  return Trouble{ncclInvalidArgument,
                 fmt::format("the stream is of {}, the communicator's rank {} is on {}",
                             owner_name(device), comm.rank(), owner_name(comm.device()))};
}

std::optional<Trouble> check_numbers(const Comm& comm, const CallNote& note) {
  if (size_of(static_cast<ncclDataType_t>(note.type)) == 0) {
    return Trouble{ncclInvalidArgument,
                   fmt::format("type {} ({}) is not one of the emulator's", note.type,
                               name(static_cast<ncclDataType_t>(note.type)))};
  }
  if (reduces(note.kind) && (note.op < ncclSum || note.op > ncclAvg)) {
    return Trouble{ncclInvalidArgument, fmt::format("reduction {} is none of 0 to 4", note.op)};
  }
  if (note.peer < 0 || note.peer >= comm.ranks()) {
    return Trouble{ncclInvalidArgument,
                   fmt::format("rank {} is none of 0 to {}", note.peer, comm.ranks() - 1)};
  }
  return std::nullopt;
}

std::optional<Trouble> find_fault_of(const Comm& comm, const Call& call, cudaStream_t stream) {
  if (auto fault = check_numbers(comm, call.note)) return fault;
  if (auto fault = check_stream(comm, stream)) return fault;
  const Extents extents = extents_of(comm, call);
  if (auto fault = check_buffer(comm, "the input", extents.in, extents.in_bytes)) return fault;
  if (auto fault = check_buffer(comm, "the output", extents.out, extents.out_bytes)) return fault;
  return check_overlap(comm, call, extents);
}

}  // namespace

std::optional<Trouble> find_fault(const Comm& comm, const Call& call, cudaStream_t stream) {
  auto fault = find_fault_of(comm, call, stream);
  if (fault) fault->text = describe(call.note) + ": " + fault->text;
  return fault;
}

}  // namespace convoy::emulator::nccl
