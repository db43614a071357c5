// Functions of a warp, all made of one primitive: lanes leave their operands, the last one to come
// computes for all. Lanes that wait for each other with different masks or at different places are
// a fault.
#pragma once

#include <array>
#include <cstring>
#include <type_traits>

#include "kernels/emulator/machine.h"

namespace convoy::emulator {

inline constexpr int warpSize = 32;

namespace machine {

inline constexpr unsigned kAllLanes = 0xffffffffu;

/// Computes all lanes' results in place; a lane outside the mask has no operand (nullptr).
using FinishCollective = void (*)(const void* context, void* const operands[kWarpSize]);

/// Waits until all lanes of `mask` that the block has came with `what`, `mask` and `site`, and
/// finish() has run once for all. `operand` is this lane's place for what goes in and comes out.
void collective(const char* what, unsigned mask, const Site& site, void* operand,
                FinishCollective finish, const void* context);

/// Operands of all lanes by lane.
template <class T>
class Lanes {
 public:
  explicit Lanes(void* const* operands) : operands_(operands) {}
  /// Whether the lane took part.
  bool has(unsigned lane) const { return lane < kWarpSize && operands_[lane] != nullptr; }
  T& operator[](unsigned lane) const { return *static_cast<T*>(operands_[lane]); }
  /// Calls use(lane, operand) for those that took part.
  template <class Use>
  void each(Use use) const {
    for (unsigned lane = 0; lane < kWarpSize; ++lane) {
      if (has(lane)) use(lane, (*this)[lane]);
    }
  }

 private:
  void* const* operands_;
};

/// The same with operands of type T (every lane of the same type) and finish(Lanes<T>).
template <class T, class Finish>
void collective(const char* what, unsigned mask, const Site& site, T& operand,
                const Finish& finish) {
  collective(
      what, mask, site, &operand,
      [](const void* context, void* const operands[kWarpSize]) {
        (*static_cast<const Finish*>(context))(Lanes<T>(operands));
      },
      &finish);
}

/// What reads of lanes that do not take part give: bytes of 0xFF.
template <class T>
T poison() {
  T value;
  std::memset(&value, 0xFF, sizeof value);
  return value;
}

template <class T>
struct Shuffled {
  T value;
  int from;  // lane
};

template <class T>
T shuffle(const char* what, unsigned mask, const Site& site, T value, int from) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 8);
  Shuffled<T> operand{value, from};
  collective(what, mask, site, operand, [](Lanes<Shuffled<T>> lanes) {
    std::array<T, kWarpSize> results;
    lanes.each([&](unsigned lane, const Shuffled<T>& mine) {
      const auto source = static_cast<unsigned>(mine.from);
      results[lane] = lanes.has(source) ? lanes[source].value : poison<T>();
    });
    lanes.each([&](unsigned lane, Shuffled<T>& mine) { mine.value = results[lane]; });
  });
  return operand.value;
}

/// The running lane; a fault where `width` is no power of two up to 32.
int lane_of(const char* what, int width);

template <class T, class Combine>
T reduce(const char* what, unsigned mask, const Site& site, T value, Combine) {
  collective(what, mask, site, value, [](Lanes<T> lanes) {
    T total{};
    bool first = true;
    lanes.each([&](unsigned, const T& mine) {
      total = first ? mine : Combine()(total, mine);
      first = false;
    });
    lanes.each([&](unsigned, T& mine) { mine = total; });
  });
  return value;
}

}  // namespace machine

// NOLINTBEGIN(bugprone-reserved-identifier): the names are CUDA's.
/// The value of lane `from` of this lane's group of `width`.
template <class T>
T __shfl_sync(unsigned mask, T value, int from, int width = warpSize,
              machine::Site site = machine::Site::here()) {
  const int lane = machine::lane_of("__shfl_sync", width);
  return machine::shuffle("__shfl_sync", mask, site, value,
                          (lane & ~(width - 1)) | (from & (width - 1)));
}

/// The value of the lane `delta` below; the own one where the group has none.
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = warpSize,
                 machine::Site site = machine::Site::here()) {
  const int lane = machine::lane_of("__shfl_up_sync", width);
  const bool inside = delta <= static_cast<unsigned>(lane & (width - 1));
  return machine::shuffle("__shfl_up_sync", mask, site, value,
                          inside ? lane - static_cast<int>(delta) : lane);
}

/// The value of the lane `delta` above; the own one where the group has none.
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = warpSize,
                   machine::Site site = machine::Site::here()) {
  const int lane = machine::lane_of("__shfl_down_sync", width);
  const bool inside = delta < static_cast<unsigned>(width - (lane & (width - 1)));
  return machine::shuffle("__shfl_down_sync", mask, site, value,
                          inside ? lane + static_cast<int>(delta) : lane);
}

/// The value of lane (lane ^ bits); the own one where that lies above the group.
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int bits, int width = warpSize,
                  machine::Site site = machine::Site::here()) {
  const int lane = machine::lane_of("__shfl_xor_sync", width);
  const int from = lane ^ bits;
  return machine::shuffle("__shfl_xor_sync", mask, site, value,
                          from <= (lane | (width - 1)) ? from : lane);
}

unsigned __ballot_sync(unsigned mask, int predicate, machine::Site site = machine::Site::here());
int __any_sync(unsigned mask, int predicate, machine::Site site = machine::Site::here());
int __all_sync(unsigned mask, int predicate, machine::Site site = machine::Site::here());
void __syncwarp(unsigned mask = machine::kAllLanes, machine::Site site = machine::Site::here());
/// Lanes with the same value as this one.
unsigned __match_any_sync(unsigned mask, unsigned value,
                          machine::Site site = machine::Site::here());
/// Lanes of this warp that have not ended.
unsigned __activemask();

unsigned __reduce_add_sync(unsigned mask, unsigned value,
                           machine::Site site = machine::Site::here());
unsigned __reduce_min_sync(unsigned mask, unsigned value,
                           machine::Site site = machine::Site::here());
unsigned __reduce_max_sync(unsigned mask, unsigned value,
                           machine::Site site = machine::Site::here());
int __reduce_add_sync(unsigned mask, int value, machine::Site site = machine::Site::here());
int __reduce_min_sync(unsigned mask, int value, machine::Site site = machine::Site::here());
int __reduce_max_sync(unsigned mask, int value, machine::Site site = machine::Site::here());
unsigned __reduce_and_sync(unsigned mask, unsigned value,
                           machine::Site site = machine::Site::here());
unsigned __reduce_or_sync(unsigned mask, unsigned value,
                          machine::Site site = machine::Site::here());
unsigned __reduce_xor_sync(unsigned mask, unsigned value,
                           machine::Site site = machine::Site::here());

// NOLINTEND(bugprone-reserved-identifier)

}  // namespace convoy::emulator
