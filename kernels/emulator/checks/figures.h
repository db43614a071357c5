// How kernels use memory, as figures: bytes against those that must be moved once, sectors of 32
// bytes per request of a warp, and trips to the banks of shared memory.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "kernels/emulator/checks/order.h"
#include "kernels/emulator/kernel_figures.h"

namespace convoy::emulator::checks {

/// One access of each active lane of a warp, by the same instruction.
struct Request {
  std::uint32_t lanes = 0;  // bit mask
  std::uint32_t bytes = 0;  // of each lane
  std::uintptr_t address[kLanes] = {};
};

struct Cost {
  std::uint32_t actual = 0, ideal = 0;
};

/// Trips to the 32 banks of 4 bytes that a request to shared memory takes: lanes with 8 bytes go by
/// halves of the warp, those with 16 by quarters; words read by several lanes count once.
Cost wavefronts(const Request& request);

/// Sectors of 32 bytes that a request to global memory touches, and the least that hold its bytes.
Cost sectors(const Request& request);

/// One instruction may serve shared and global memory, through a pointer that is either.
inline std::uint64_t instruction_key(std::uint32_t code, bool is_shared) {
  return std::uint64_t{code} << 1 | (is_shared ? 1 : 0);
}
inline std::uint32_t code_of(std::uint64_t key) {
  return std::uint32_t(key >> 1);
}

/// Adds the counts of `from`.
void add(SiteFigures& to, const SiteFigures& from);

/// Collects what one block does. The n-th time that a lane comes by an instruction belongs to the
/// n-th time of the other lanes of its warp.
class BlockFigures {
 public:
  void add(int thread, std::uint32_t code, const void* address, std::uint32_t bytes, bool is_shared,
           bool is_write);
  /// Adds the sums to `sites`, by instruction_key().
  void finish(std::map<std::uint64_t, SiteFigures>& sites);

 private:
  struct Instruction {
    bool is_shared, is_write;
    std::unordered_map<int, std::uint32_t> times;                       // by thread
    std::unordered_map<int, std::map<std::uint32_t, Request>> pending;  // by warp, time
    SiteFigures sums;
  };
  static void evaluate(Instruction& instruction, const Request& request);
  std::unordered_map<std::uint64_t, Instruction> instructions_;
};

}  // namespace convoy::emulator::checks
