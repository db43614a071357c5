#include "kernels/emulator/intrinsics.h"

#include <atomic>

#include "kernels/emulator/block_runner.h"

namespace convoy::emulator {

void __threadfence() {
  Thread& thread = running_thread("__threadfence");
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (Observer* observer = running_options().observer) observer->fence(thread);
}

void __threadfence_block() {
  __threadfence();
}
void __threadfence_system() {
  __threadfence();
}

void __nanosleep(unsigned) {
  running_thread("__nanosleep");
  BlockRunner::here().yield();
}

void __trap() {
  fault(cudaErrorLaunchFailure, "__trap()");
}

}  // namespace convoy::emulator
