// Kernels with one bug each and their correct twins, for tests of the checks.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "kernels/emulator/machine.h"

namespace convoy::emulator::testing {

/// Runs a kernel, the one with the bug or its twin; throws DeviceFault.
using RunPlanted = std::function<void(bool with_bug)>;

struct Planted {
  std::string name;
  RunPlanted run;
  /// What the report must hold. "@MARK" stands for file and line of the source line that ends in
  /// "// MARK".
  std::vector<std::string> report;
};

/// All kernels whose bug is a fault.
std::vector<Planted> planted_kernels();

/// Transposes a tile of 32 x 32 floats in shared memory with rows of 32, or of 33 words.
void run_transpose(bool padded);
/// Copies floats: lane i moves element i, or element 8 * i.
void run_copy(bool strided);
/// Sums what 64 threads leave in shared memory, with or without the barrier that it needs; returns
/// what came out. The checks do not see it: for runs in several orders.
float run_order_dependent(bool with_bug, machine::Order order);

}  // namespace convoy::emulator::testing
