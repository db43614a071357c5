// Errors of the CUDA runtime: numbers, names and texts are CUDA's.
#pragma once

namespace convoy::emulator {

// CONVOY_ERROR(name, number, text)
#define CONVOY_CUDA_ERRORS(CONVOY_ERROR)                                                       \
  CONVOY_ERROR(cudaSuccess, 0, "no error")                                                     \
  CONVOY_ERROR(cudaErrorInvalidValue, 1, "invalid argument")                                   \
  CONVOY_ERROR(cudaErrorMemoryAllocation, 2, "out of memory")                                  \
  CONVOY_ERROR(cudaErrorInvalidConfiguration, 9, "invalid configuration argument")             \
  CONVOY_ERROR(cudaErrorInvalidMemcpyDirection, 21, "invalid copy direction for memcpy")       \
  CONVOY_ERROR(cudaErrorInsufficientDriver, 35,                                                \
               "CUDA driver version is insufficient for CUDA runtime version")                 \
  CONVOY_ERROR(cudaErrorNoDevice, 100, "no CUDA-capable device is detected")                   \
  CONVOY_ERROR(cudaErrorInvalidDevice, 101, "invalid device ordinal")                          \
  CONVOY_ERROR(cudaErrorPeerAccessUnsupported, 217,                                            \
               "peer access is not supported between these two devices")                       \
  CONVOY_ERROR(cudaErrorInvalidResourceHandle, 400, "invalid resource handle")                 \
  CONVOY_ERROR(cudaErrorIllegalState, 401,                                                     \
               "the operation cannot be performed in the present state")                       \
  CONVOY_ERROR(cudaErrorNotReady, 600, "device not ready")                                     \
  CONVOY_ERROR(cudaErrorIllegalAddress, 700, "an illegal memory access was encountered")       \
  CONVOY_ERROR(cudaErrorLaunchOutOfResources, 701, "too many resources requested for launch")  \
  CONVOY_ERROR(cudaErrorLaunchTimeout, 702, "the launch timed out and was terminated")         \
  CONVOY_ERROR(cudaErrorPeerAccessAlreadyEnabled, 704, "peer access is already enabled")       \
  CONVOY_ERROR(cudaErrorPeerAccessNotEnabled, 705, "peer access has not been enabled")         \
  CONVOY_ERROR(cudaErrorAssert, 710, "device-side assert triggered")                           \
  CONVOY_ERROR(cudaErrorIllegalInstruction, 715, "an illegal instruction was encountered")     \
  CONVOY_ERROR(cudaErrorMisalignedAddress, 716, "misaligned address")                          \
  CONVOY_ERROR(cudaErrorLaunchFailure, 719, "unspecified launch failure")                      \
  CONVOY_ERROR(cudaErrorNotPermitted, 800, "operation not permitted")                          \
  CONVOY_ERROR(cudaErrorNotSupported, 801, "operation not supported")                          \
  CONVOY_ERROR(cudaErrorStreamCaptureUnsupported, 900,                                         \
               "operation not permitted when stream is capturing")                             \
  CONVOY_ERROR(cudaErrorStreamCaptureInvalidated, 901,                                         \
               "operation failed due to a previous error during capture")                      \
  CONVOY_ERROR(cudaErrorStreamCaptureMerge, 902,                                               \
               "operation would result in a merge of separate capture sequences")              \
  CONVOY_ERROR(cudaErrorStreamCaptureUnmatched, 903,                                           \
               "capture was not ended in the same stream as it began")                         \
  CONVOY_ERROR(cudaErrorStreamCaptureUnjoined, 904, "capturing stream has unjoined work")      \
  CONVOY_ERROR(cudaErrorStreamCaptureIsolation, 905,                                           \
               "dependency created on uncaptured work in another stream")                      \
  CONVOY_ERROR(cudaErrorStreamCaptureImplicit, 906,                                            \
               "operation would make the legacy stream depend on a capturing blocking stream") \
  CONVOY_ERROR(cudaErrorCapturedEvent, 907,                                                    \
               "operation not permitted on an event last recorded in a capturing stream")      \
  CONVOY_ERROR(cudaErrorStreamCaptureWrongThread, 908,                                         \
               "attempt to terminate a thread-local capture sequence from another thread")     \
  CONVOY_ERROR(cudaErrorUnknown, 999, "unknown error")

enum cudaError_t : int {
#define CONVOY_ERROR(name, number, text) name = number,
  CONVOY_CUDA_ERRORS(CONVOY_ERROR)
#undef CONVOY_ERROR
};

const char* cudaGetErrorName(cudaError_t error);
const char* cudaGetErrorString(cudaError_t error);

}  // namespace convoy::emulator
