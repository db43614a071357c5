// The backends of this build. One that is left out is a small file whose function throws.
#pragma once

#include <memory>

#include "kernels/base/context.h"

namespace convoy {

/// Opens `device`; `usage` where this build or this machine has no such device.
std::unique_ptr<DeviceContext> open_device(const Device& device);

namespace reference {
std::unique_ptr<DeviceContext> open(int index);
}
namespace cpu {
std::unique_ptr<DeviceContext> open(int index);
}
namespace cuda {
std::unique_ptr<DeviceContext> open(int index);
/// GPUs that the driver shows; 0 without one.
int count();
}  // namespace cuda
namespace emulator {
std::unique_ptr<DeviceContext> open(int index);
int count();
}  // namespace emulator

}  // namespace convoy
