// The backends of this build. One that is left out is a small file whose function throws.
#pragma once

#include <memory>
#include <string>

#include "kernels/base/context.h"

namespace convoy {

/// Opens `device`; `usage` where this build or this machine has no such device.
std::unique_ptr<DeviceContext> open_device(const Device& device);

/// Whose kernels a device runs: written here, or of libraries of the GPU's vendor (deterministic:
/// only such as give equal bits in each run).
enum class KernelChoice { own, vendor, vendor_deterministic };

/// What context(device).kernels() returns from now on; at first its own. `usage` where the vendor's
/// are not here.
void choose_kernels(const Device& device, KernelChoice choice);

namespace reference {
std::unique_ptr<DeviceContext> open(int index);
}
namespace cpu {
std::unique_ptr<DeviceContext> open(int index);
/// Why devices cpu:K do not compute in bf16; empty where they do.
std::string why_no_bf16();
}  // namespace cpu
namespace cuda {
std::unique_ptr<DeviceContext> open(int index);
/// GPUs that the driver shows; 0 without one.
int count();
void choose_kernels(const Device& device, KernelChoice choice);
}  // namespace cuda
namespace emulator {
void choose_kernels(const Device& device, KernelChoice choice);
std::unique_ptr<DeviceContext> open(int index);
int count();
}  // namespace emulator

}  // namespace convoy
