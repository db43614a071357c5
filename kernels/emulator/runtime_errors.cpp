#include "kernels/emulator/runtime_errors.h"

namespace convoy::emulator {

const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
#define CONVOY_ERROR(name, number, text) \
  case name:                             \
    return #name;
    CONVOY_CUDA_ERRORS(CONVOY_ERROR)
#undef CONVOY_ERROR
  }
  return "unrecognized error code";
}

const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
#define CONVOY_ERROR(name, number, text) \
  case name:                             \
    return text;
    CONVOY_CUDA_ERRORS(CONVOY_ERROR)
#undef CONVOY_ERROR
  }
  return "unrecognized error code";
}

}  // namespace convoy::emulator
