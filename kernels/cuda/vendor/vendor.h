// The vendor's libraries on one GPU: their functions, a handle of each, and what was chosen.
#pragma once

#include <cublasLt.h>
#include <cudnn.h>

#include <map>
#include <memory>
#include <mutex>

#include "kernels/base/stream.h"
#include "kernels/cuda/platform.h"
#include "kernels/cuda/vendor/conv_plan.h"

namespace convoy::cuda::vendor {

// CONVOY_CALL(name) for each function that is used.
#define CONVOY_CUDNN_CALLS(CONVOY_CALL)                      \
  CONVOY_CALL(cudnnActivationBackward)                       \
  CONVOY_CALL(cudnnActivationForward)                        \
  CONVOY_CALL(cudnnAddTensor)                                \
  CONVOY_CALL(cudnnBatchNormalizationBackward)               \
  CONVOY_CALL(cudnnBatchNormalizationForwardInference)       \
  CONVOY_CALL(cudnnBatchNormalizationForwardTraining)        \
  CONVOY_CALL(cudnnConvolutionBackwardData)                  \
  CONVOY_CALL(cudnnConvolutionBackwardFilter)                \
  CONVOY_CALL(cudnnConvolutionForward)                       \
  CONVOY_CALL(cudnnCreate)                                   \
  CONVOY_CALL(cudnnCreateActivationDescriptor)               \
  CONVOY_CALL(cudnnCreateConvolutionDescriptor)              \
  CONVOY_CALL(cudnnCreateFilterDescriptor)                   \
  CONVOY_CALL(cudnnCreatePoolingDescriptor)                  \
  CONVOY_CALL(cudnnCreateTensorDescriptor)                   \
  CONVOY_CALL(cudnnDestroyActivationDescriptor)              \
  CONVOY_CALL(cudnnDestroyConvolutionDescriptor)             \
  CONVOY_CALL(cudnnDestroyFilterDescriptor)                  \
  CONVOY_CALL(cudnnDestroyPoolingDescriptor)                 \
  CONVOY_CALL(cudnnDestroyTensorDescriptor)                  \
  CONVOY_CALL(cudnnGetConvolutionBackwardDataAlgorithm_v7)   \
  CONVOY_CALL(cudnnGetConvolutionBackwardFilterAlgorithm_v7) \
  CONVOY_CALL(cudnnGetConvolutionForwardAlgorithm_v7)        \
  CONVOY_CALL(cudnnGetErrorString)                           \
  CONVOY_CALL(cudnnPoolingBackward)                          \
  CONVOY_CALL(cudnnPoolingForward)                           \
  CONVOY_CALL(cudnnSetActivationDescriptor)                  \
  CONVOY_CALL(cudnnSetConvolution2dDescriptor)               \
  CONVOY_CALL(cudnnSetConvolutionGroupCount)                 \
  CONVOY_CALL(cudnnSetConvolutionMathType)                   \
  CONVOY_CALL(cudnnSetFilter4dDescriptor)                    \
  CONVOY_CALL(cudnnSetPooling2dDescriptor)                   \
  CONVOY_CALL(cudnnSetStream)                                \
  CONVOY_CALL(cudnnSetTensor4dDescriptor)

#define CONVOY_CUBLAS_LT_CALLS(CONVOY_CALL)         \
  CONVOY_CALL(cublasLtCreate)                       \
  CONVOY_CALL(cublasLtMatmul)                       \
  CONVOY_CALL(cublasLtMatmulAlgoGetHeuristic)       \
  CONVOY_CALL(cublasLtMatmulDescCreate)             \
  CONVOY_CALL(cublasLtMatmulDescDestroy)            \
  CONVOY_CALL(cublasLtMatmulDescSetAttribute)       \
  CONVOY_CALL(cublasLtMatmulPreferenceCreate)       \
  CONVOY_CALL(cublasLtMatmulPreferenceDestroy)      \
  CONVOY_CALL(cublasLtMatmulPreferenceSetAttribute) \
  CONVOY_CALL(cublasLtMatrixLayoutCreate)           \
  CONVOY_CALL(cublasLtMatrixLayoutDestroy)          \
  CONVOY_CALL(cublasLtGetStatusString)

/// The functions by their own names; members of an opened library.
struct Calls {
#define CONVOY_CALL(name) decltype(&::name) name = nullptr;
  CONVOY_CUDNN_CALLS(CONVOY_CALL)
  CONVOY_CUBLAS_LT_CALLS(CONVOY_CALL)
#undef CONVOY_CALL
};

/// Opens both libraries on the first call; `usage` where one is missing.
const Calls& calls();

/// `internal`, with the library's text, unless `status` is success.
void check(cudnnStatus_t status, const char* kernel);
void check(cublasStatus_t status, const char* kernel);

/// One GPU. A handle serves one call at a time.
struct VendorDevice {
  std::mutex mutex;
  cudnnHandle_t cudnn = nullptr;
  cublasLtHandle_t cublas = nullptr;
  bool deterministic = false;
  std::map<ConvKey, std::unique_ptr<ConvPlan>> plans;
};

/// The device's state, made on the first call.
VendorDevice& vendor_device(const Device& device);

/// The library's handles with work going to `stream`, while it lives nobody else's.
class Lock {
 public:
  Lock(Stream& stream, const char* kernel);

  VendorDevice* operator->() const { return &device_; }
  VendorDevice& operator*() const { return device_; }

 private:
  VendorDevice& device_;
  std::lock_guard<std::mutex> lock_;
};

}  // namespace convoy::cuda::vendor
