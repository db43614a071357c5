#include "kernels/emulator/intrinsics.h"

#include <atomic>
#include <chrono>

#include "kernels/emulator/block_runner.h"

namespace convoy::emulator {

using namespace machine;  // NOLINT(google-build-using-namespace)

void __threadfence() {
  Thread& thread = running_thread("__threadfence");
#ifndef __SANITIZE_THREAD__  // which does not know fences
  std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
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

long long clock64() {
  return std::chrono::steady_clock::now().time_since_epoch().count();
}
int clock() {
  return static_cast<int>(clock64());
}

void __trap() {
  fault(cudaErrorLaunchFailure, "__trap()");
}

}  // namespace convoy::emulator
