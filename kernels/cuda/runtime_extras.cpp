#include "kernels/cuda/runtime_extras.h"

namespace convoy::CONVOY_GPU {

std::string failure_detail() {
  return {};
}

bool wants_whole_blocks() {
  return false;
}

}  // namespace convoy::CONVOY_GPU
