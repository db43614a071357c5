// One call of NCCL as a rank makes it and as it tells the others of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "kernels/emulator/nccl_api.h"

namespace convoy::emulator::nccl {

enum class Kind : std::int32_t {
  none,
  all_reduce,
  reduce,
  broadcast,
  reduce_scatter,
  all_gather,
  send,
  receive
};

/// "ncclAllReduce", ...
const char* name(Kind kind);

inline bool is_message(Kind kind) {
  return kind == Kind::send || kind == Kind::receive;
}
/// Whether the call adds values up.
inline bool reduces(Kind kind) {
  return kind == Kind::all_reduce || kind == Kind::reduce || kind == Kind::reduce_scatter;
}

/// What a call says to other ranks: lies in memory that processes share. 0 where a kind has none.
struct CallNote {
  Kind kind = Kind::none;
  std::int32_t type = 0;
  std::int32_t op = 0;
  std::int32_t peer = 0;  ///< root, or the other end of a message
  std::uint64_t count = 0;
  std::int32_t line = 0;
  char file[84] = {};

  bool operator==(const CallNote& other) const;
};

/// "ncclAllReduce(100 x f32, sum) at reducer.cpp:12".
std::string describe(const CallNote& note);

struct Call {
  CallNote note;
  const void* send = nullptr;
  void* receive = nullptr;
};

CallNote make_note(Kind kind, std::size_t count, ncclDataType_t type, ncclRedOp_t op, int peer,
                   const CallSite& site);

/// Bytes of an element; 0 for types that the emulator has not.
std::size_t size_of(ncclDataType_t type);
/// "f32", "bf16", ...
const char* name(ncclDataType_t type);
/// "sum", ...
const char* name(ncclRedOp_t op);

}  // namespace convoy::emulator::nccl
