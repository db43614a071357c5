// Checks of what callers hand to a communicator: each is `usage` with the call's name and the
// value.
#pragma once

#include <cstdint>

#include "comm/communicator.h"

namespace convoy {

/// `count` values at `values`: no negative count, no null pointer where there are values.
void check_values(const char* call, const void* values, std::int64_t count);
/// `mean` needs a floating type.
void check_reduction(const char* call, DType dtype, Reduction reduction);
/// `a` and `b` are the same place or have no byte of `bytes` in common.
void check_apart(const char* call, const void* a, std::int64_t bytes_a, const void* b,
                 std::int64_t bytes_b);
void check_root(const char* call, int root, const Communicator& group);
/// Another rank of the group, and a tag that messages may have.
void check_peer(const char* call, int peer, int tag, const Communicator& group);

}  // namespace convoy
