#include "comm/check_arguments.h"

#include "comm/channel.h"

namespace convoy {

void check_values(const char* call, const void* values, std::int64_t count) {
  CONVOY_CHECK(count >= 0, "{}: count is {}, expected at least 0", call, count);
  CONVOY_CHECK(values || count == 0, "{}: the buffer of {} values is null", call, count);
}

void check_reduction(const char* call, DType dtype, Reduction reduction) {
  CONVOY_CHECK(reduction != Reduction::mean || is_floating(dtype),
               "{}: mean of {}, expected a floating type", call, name(dtype));
}

void check_apart(const char* call, const void* a, std::int64_t bytes_a, const void* b,
                 std::int64_t bytes_b) {
  const auto begin_a = reinterpret_cast<std::uintptr_t>(a);
  const auto begin_b = reinterpret_cast<std::uintptr_t>(b);
  const bool apart = begin_a + bytes_a <= begin_b || begin_b + bytes_b <= begin_a;
  CONVOY_CHECK(apart || begin_a == begin_b,
               "{}: input and output overlap by part, expected the same buffer or another", call);
}

void check_root(const char* call, int root, const Communicator& group) {
  CONVOY_CHECK(root >= 0 && root < group.size(), "{}: root is rank {}, expected 0 to {}", call,
               root, group.size() - 1);
}

void check_peer(const char* call, int peer, int tag, const Communicator& group) {
  CONVOY_CHECK(peer >= 0 && peer < group.size(), "{}: peer is rank {}, expected 0 to {}", call,
               peer, group.size() - 1);
  CONVOY_CHECK(peer != group.rank(), "{}: peer is rank {}, this rank itself", call, peer);
  CONVOY_CHECK(tag >= 0 && tag <= Fabric::kLastTag, "{}: tag is {}, expected 0 to {}", call, tag,
               Fabric::kLastTag);
}

}  // namespace convoy
