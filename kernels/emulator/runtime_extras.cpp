#include "kernels/cuda/runtime_extras.h"

#include "kernels/emulator/device_memory.h"

namespace convoy::emulator {

bool wants_whole_blocks() {
  return memory_observer() != nullptr;
}

}  // namespace convoy::emulator
