// Builds without the headers of cuDNN and cuBLASLt.
#include "kernels/base/error.h"
#include "kernels/cuda/context.h"

namespace convoy::cuda {

const KernelTable& vendor_kernel_table(const Device&, bool) {
  CONVOY_FAIL(usage, "--kernels vendor: this program was built without cuDNN's headers");
}

}  // namespace convoy::cuda
