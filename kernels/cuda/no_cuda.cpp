// Stands in for the CUDA backend in builds without nvcc.
#include "kernels/backends.h"
#include "kernels/base/error.h"

namespace convoy::cuda {

std::unique_ptr<DeviceContext> open(int index) {
  CONVOY_FAIL(usage, "device: cuda:{} is not in this build, which was made without nvcc", index);
}

int count() {
  return 0;
}

void choose_kernels(const Device& device, KernelChoice) {
  open(device.index);
}

}  // namespace convoy::cuda
