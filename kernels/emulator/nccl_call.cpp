#include "kernels/emulator/nccl_call.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <string_view>

namespace convoy::emulator::nccl {

const char* name(Kind kind) {
  switch (kind) {
    case Kind::none:
      return "no call";
    case Kind::all_reduce:
      return "ncclAllReduce";
    case Kind::reduce:
      return "ncclReduce";
    case Kind::broadcast:
      return "ncclBroadcast";
    case Kind::reduce_scatter:
      return "ncclReduceScatter";
    case Kind::all_gather:
      return "ncclAllGather";
    case Kind::send:
      return "ncclSend";
    case Kind::receive:
      return "ncclRecv";
  }
  return "?";
}

const char* name(ncclDataType_t type) {
  switch (type) {
    case ncclInt8:
      return "i8";
    case ncclUint8:
      return "u8";
    case ncclInt32:
      return "i32";
    case ncclUint32:
      return "u32";
    case ncclInt64:
      return "i64";
    case ncclUint64:
      return "u64";
    case ncclFloat16:
      return "f16";
    case ncclFloat32:
      return "f32";
    case ncclFloat64:
      return "f64";
    case ncclBfloat16:
      return "bf16";
  }
  return "?";
}

const char* name(ncclRedOp_t op) {
  switch (op) {
    case ncclSum:
      return "sum";
    case ncclProd:
      return "prod";
    case ncclMax:
      return "max";
    case ncclMin:
      return "min";
    case ncclAvg:
      return "avg";
  }
  return "?";
}

std::size_t size_of(ncclDataType_t type) {
  switch (type) {
    case ncclInt8:
    case ncclUint8:
      return 1;
    case ncclBfloat16:
      return 2;
    case ncclInt32:
    case ncclUint32:
    case ncclFloat32:
      return 4;
    case ncclInt64:
    case ncclUint64:
    case ncclFloat64:
      return 8;
    case ncclFloat16:
      break;
  }
  return 0;
}

// Where the call stands does not matter.
bool CallNote::operator==(const CallNote& other) const {
  return kind == other.kind && type == other.type && op == other.op && peer == other.peer &&
         count == other.count;
}

std::string describe(const CallNote& note) {
  std::string text = fmt::format("{}({} x {}", name(note.kind), note.count,
                                 name(static_cast<ncclDataType_t>(note.type)));
  if (reduces(note.kind)) text += fmt::format(", {}", name(static_cast<ncclRedOp_t>(note.op)));
  if (note.kind == Kind::reduce || note.kind == Kind::broadcast) {
    text += fmt::format(", root {}", note.peer);
  }
  if (note.kind == Kind::send) text += fmt::format(" to rank {}", note.peer);
  if (note.kind == Kind::receive) text += fmt::format(" from rank {}", note.peer);
  return text + fmt::format(") at {}:{}", note.file, note.line);
}

CallNote make_note(Kind kind, std::size_t count, ncclDataType_t type, ncclRedOp_t op, int peer,
                   const CallSite& site) {
  CallNote note;
  note.kind = kind;
  note.type = type;
  note.op = op;
  note.peer = peer;
  note.count = count;
  note.line = static_cast<std::int32_t>(site.line());
  std::string_view file = site.file_name();
  if (file.size() >= sizeof note.file) file = file.substr(file.size() - sizeof note.file + 1);
  std::copy(file.begin(), file.end(), note.file);
  return note;
}

}  // namespace convoy::emulator::nccl
