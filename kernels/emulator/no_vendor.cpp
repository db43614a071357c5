// Emulated devices have no vendor's libraries.
#include "kernels/base/error.h"
#include "kernels/cuda/context.h"

namespace convoy::emulator {

const KernelTable& vendor_kernel_table(const Device& device, bool) {
  CONVOY_FAIL(usage, "{}: no vendor's kernels here, which cuda:K has", to_string(device));
}

}  // namespace convoy::emulator
