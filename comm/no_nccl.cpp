// What stands in for the vendor's NCCL in a build without its header or without CUDA.
#include "comm/nccl_devices.h"

namespace convoy::cuda {

std::unique_ptr<NcclCommunicator> make_nccl(HostCommunicator&, const Device& device,
                                            const NcclOptions&) {
  CONVOY_FAIL(usage, "nccl: {}: this program was built without NCCL", to_string(device));
}

int nccl_version() {
  CONVOY_FAIL(usage, "nccl: this program was built without NCCL");
}

bool has_nccl() {
  return false;
}

}  // namespace convoy::cuda
