#include "kernels/cuda/vendor/vendor.h"

#include "kernels/base/error.h"
#include "kernels/cuda/gpu_stream.h"
#include "kernels/cuda/vendor/library.h"

namespace convoy::cuda::vendor {
namespace {

Calls open_libraries() {
  const Library cudnn("cuDNN 9", "libcudnn.so.9");
  const Library cublas("cuBLASLt", "libcublasLt.so.13");
  Calls found;
#define CONVOY_CALL(name) cudnn.find(#name, found.name);
  CONVOY_CUDNN_CALLS(CONVOY_CALL)
#undef CONVOY_CALL
#define CONVOY_CALL(name) cublas.find(#name, found.name);
  CONVOY_CUBLAS_LT_CALLS(CONVOY_CALL)
#undef CONVOY_CALL
  return found;
}

void make_handles(VendorDevice& device) {
  check(calls().cudnnCreate(&device.cudnn), "cuDNN");
  check(calls().cublasLtCreate(&device.cublas), "cuBLASLt");
}

}  // namespace

const Calls& calls() {
  static const Calls* const found = new Calls(open_libraries());
  return *found;
}

void check(cudnnStatus_t status, const char* kernel) {
  CONVOY_DCHECK(status == CUDNN_STATUS_SUCCESS, "{}: cuDNN: {}", kernel,
                calls().cudnnGetErrorString(status));
}

void check(cublasStatus_t status, const char* kernel) {
  CONVOY_DCHECK(status == CUBLAS_STATUS_SUCCESS, "{}: cuBLASLt: {}", kernel,
                calls().cublasLtGetStatusString(status));
}

// Handles live as long as the process, as the contexts of devices do.
VendorDevice& vendor_device(const Device& device) {
  static auto* const mutex = new std::mutex;
  static auto* const devices = new std::map<int, std::unique_ptr<VendorDevice>>;
  std::lock_guard lock(*mutex);
  std::unique_ptr<VendorDevice>& slot = (*devices)[device.index];
  if (slot) return *slot;
  CONVOY_DCHECK(cudaSetDevice(device.index) == cudaSuccess, "{}: is not here", to_string(device));
  auto made = std::make_unique<VendorDevice>();
  make_handles(*made);
  slot = std::move(made);
  return *slot;
}

Lock::Lock(Stream& stream, const char* kernel)
    : device_(vendor_device(stream.device())), lock_(device_.mutex) {
  check(calls().cudnnSetStream(device_.cudnn, handle(stream)), kernel);
}

}  // namespace convoy::cuda::vendor
