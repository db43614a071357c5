#include "kernels/cuda/runtime_extras.h"

#include "kernels/cuda/check.h"

namespace convoy::CONVOY_GPU {

std::string failure_detail() {
  return {};
}

bool wants_whole_blocks() {
  return false;
}

void reach_peer(int device, int peer) {
  int can = 0;
  check(cudaDeviceCanAccessPeer(&can, device, peer));
  if (!can) return;
  const cudaError_t result = cudaDeviceEnablePeerAccess(peer, 0);
  if (result == cudaErrorPeerAccessAlreadyEnabled) {
    cudaGetLastError();  // by an earlier call, or by NCCL
  } else {
    check(result);
  }
}

}  // namespace convoy::CONVOY_GPU
