#include "kernels/emulator/warp.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <iterator>
#include <string_view>

#include "kernels/emulator/block_runner.h"

namespace convoy::emulator {

using namespace machine;  // NOLINT(google-build-using-namespace)

namespace {

using Collective = BlockRunner::Collective;

// Lanes of the warp that the block has.
unsigned lanes_of(const Block& block, unsigned warp) {
  const unsigned lanes = std::min(block.size - warp * kWarpSize, kWarpSize);
  return lanes == kWarpSize ? kAllLanes : (1u << lanes) - 1;
}

[[noreturn]] void raise_mismatch(const Collective& waiting, const char* what, unsigned mask,
                                 const Site& site) {
  fault(cudaErrorLaunchFailure,
        fmt::format("divergent warp: {} with mask {:#010x} at {}, but lanes {:#010x} wait in {} "
                    "with mask {:#010x} at {}",
                    what, mask, describe(site), waiting.arrived, waiting.what, waiting.mask,
                    describe(waiting.site)));
}

// The collective that the lane joins: the one that waits for it, or a new one. Several may be open,
// since parts of a warp diverge; but two that wait for each other's lanes never end.
Collective& join(std::vector<Collective>& open, unsigned lane, const char* what, unsigned mask,
                 const Site& site) {
  for (Collective& waiting : open) {
    if (waiting.mask == mask && waiting.site == site && std::strcmp(waiting.what, what) == 0) {
      return waiting;
    }
    const bool waits_for_us = (waiting.mask >> lane & 1) != 0;
    if (waits_for_us && (mask & waiting.arrived) != 0) raise_mismatch(waiting, what, mask, site);
  }
  Collective& fresh = open.emplace_back();
  fresh.mask = mask;
  fresh.what = what;
  fresh.site = site;
  fresh.operands.fill(nullptr);
  return fresh;
}

// While it lives, code of the kernel's unit that runs is the machine's: operands of all lanes are
// touched, which live on their stacks.
class Exchange {
 public:
  explicit Exchange(Thread& thread) : thread_(thread) { thread_.exchanges = true; }
  ~Exchange() { thread_.exchanges = false; }
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

 private:
  Thread& thread_;
};

void complete(BlockRunner& runner, const Thread& thread, const Collective& collective) {
  Block& block = runner.block();
  ThreadSet members;
  members.insert_lanes(thread.rank - thread.lane, collective.arrived);
  members.each([&](unsigned rank) { ++block.threads[rank].collectives; });
  // The others exchange values and order no memory.
  const bool orders = std::string_view(collective.what) == "__syncwarp";
  if (Observer* observer = runner.grid().options.observer; observer && orders) {
    observer->synchronize(block, members, false);
  }
  runner.wake(members);
}

}  // namespace

void machine::collective(const char* what, unsigned mask, const Site& site, void* operand,
                         FinishCollective finish, const void* context) {
  Thread& thread = running_thread(what);
  if ((mask >> thread.lane & 1) == 0) {
    fault(cudaErrorLaunchFailure, fmt::format("{} at {}: mask {:#010x} lacks the calling lane {}",
                                              what, describe(site), mask, thread.lane));
  }
  BlockRunner& runner = BlockRunner::here();
  std::vector<Collective>& open = runner.collectives[thread.warp];
  Collective& mine = join(open, thread.lane, what, mask, site);
  mine.arrived |= 1u << thread.lane;
  mine.operands[thread.lane] = operand;
  if (mine.arrived == (mask & lanes_of(runner.block(), thread.warp))) {
    {
      const Exchange exchange(thread);
      finish(context, mine.operands.data());
    }
    complete(runner, thread, mine);
    std::swap(mine, open.back());
    open.pop_back();
  }
  runner.wait({what, site, true, mask});
}

namespace machine {

int lane_of(const char* what, int width) {
  const Thread& thread = running_thread(what);
  if (width < 1 || width > warpSize || !std::has_single_bit(static_cast<unsigned>(width))) {
    fault(cudaErrorLaunchFailure,
          fmt::format("{}: width is {}, expected a power of two up to 32", what, width));
  }
  return static_cast<int>(thread.lane);
}

namespace {

unsigned ballot(const char* what, unsigned mask, const Site& site, bool predicate) {
  const unsigned mine = predicate ? 1u << (lane_of(what, warpSize)) : 0;
  return reduce(what, mask, site, mine, std::bit_or<>());
}

struct Least {
  template <class T>
  T operator()(T a, T b) const {
    return std::min(a, b);
  }
};
struct Greatest {
  template <class T>
  T operator()(T a, T b) const {
    return std::max(a, b);
  }
};

}  // namespace
}  // namespace machine

unsigned __ballot_sync(unsigned mask, int predicate, Site site) {
  return machine::ballot("__ballot_sync", mask, site, predicate != 0);
}

int __any_sync(unsigned mask, int predicate, Site site) {
  return machine::ballot("__any_sync", mask, site, predicate != 0) != 0 ? 1 : 0;
}

int __all_sync(unsigned mask, int predicate, Site site) {
  return machine::ballot("__all_sync", mask, site, predicate == 0) == 0 ? 1 : 0;
}

void __syncwarp(unsigned mask, Site site) {
  char nothing = 0;
  collective("__syncwarp", mask, site, nothing, [](Lanes<char>) {});
}

unsigned __match_any_sync(unsigned mask, unsigned value, Site site) {
  struct Match {
    unsigned value, lanes;
  };
  Match operand{value, 0};
  collective("__match_any_sync", mask, site, operand, [](Lanes<Match> lanes) {
    lanes.each([&](unsigned, Match& mine) {
      lanes.each([&](unsigned lane, const Match& other) {
        if (other.value == mine.value) mine.lanes |= 1u << lane;
      });
    });
  });
  return operand.lanes;
}

unsigned __activemask() {
  const Thread& thread = running_thread("__activemask");
  return BlockRunner::here().alive(thread.warp);
}

#define CONVOY_REDUCE(name, Type, Combine)                       \
  Type name(unsigned mask, Type value, Site site) {              \
    return machine::reduce(#name, mask, site, value, Combine()); \
  }
CONVOY_REDUCE(__reduce_add_sync, unsigned, std::plus<>)
CONVOY_REDUCE(__reduce_min_sync, unsigned, machine::Least)
CONVOY_REDUCE(__reduce_max_sync, unsigned, machine::Greatest)
CONVOY_REDUCE(__reduce_min_sync, int, machine::Least)
CONVOY_REDUCE(__reduce_max_sync, int, machine::Greatest)
CONVOY_REDUCE(__reduce_and_sync, unsigned, std::bit_and<>)
CONVOY_REDUCE(__reduce_or_sync, unsigned, std::bit_or<>)
CONVOY_REDUCE(__reduce_xor_sync, unsigned, std::bit_xor<>)
#undef CONVOY_REDUCE

// Wraps, as the GPU does.
int __reduce_add_sync(unsigned mask, int value, Site site) {
  return static_cast<int>(__reduce_add_sync(mask, static_cast<unsigned>(value), site));
}

}  // namespace convoy::emulator
