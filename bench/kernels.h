// bench kernels: each kernel of a training step of ResNet-50 alone. Times against the least that
// the device's measured rates allow, and beside the vendor library's; on emulated devices, which
// have no times, how the kernels use memory.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "bench/kernel_cases.h"
#include "kernels/base/context.h"
#include "kernels/emulator/kernel_figures.h"

namespace convoy {

struct KernelBenchOptions {
  Device device{"cpu:0"};
  KernelCaseOptions cases;
  bool tf32 = false;         ///< products of f32 may round to TF32
  std::int64_t repeats = 5;  ///< samples; a sample is one call, on GPUs many
};

/// What the device reaches where nothing else is in the way, measured in the same run.
struct KernelCeilings {
  double flops = 0;    ///< of products; 0: not measured
  double bytes_s = 0;  ///< of copies, read and written
  std::string source;  ///< what reached the first: "cuBLASLt", "own", "FMA loop"
};

struct KernelBenchRow {
  std::string name, shape;
  std::int64_t count = 1;
  double seconds = 0, best = 0;
  double flops = 0, bytes = 0;
  double limit_seconds = 0;   ///< the longer of its products and its bytes at the ceilings
  double share_of_limit = 0;  ///< limit_seconds / seconds
  std::optional<double> vendor_seconds;
};

struct KernelBenchResult {
  KernelCeilings ceilings;
  std::string vendor;  ///< why there are no vendor times; empty where there are
  std::vector<KernelBenchRow> rows;
};

/// Times all cases; `told` gets each row at once. Not for emu.
KernelBenchResult bench_kernels(const KernelBenchOptions& options,
                                const std::function<void(const KernelBenchRow&)>& told);

/// Runs all cases once and counts what each kernel does to memory; for emu, in a program with the
/// checks (has_kernel_figures()).
std::vector<emulator::KernelFigures> bench_kernel_figures(const KernelBenchOptions& options);

}  // namespace convoy
