#include "cli/thread_waiting.h"

#include <unistd.h>

#include <cstdlib>

namespace convoy::cli {
namespace {

// Some microseconds. By default libgomp spins for milliseconds, and where another program wants the
// same cores a training step takes up to ten times as long: the spinning thread holds the core that
// the thread it waits for needs.
constexpr const char* kSpins = "1000";

}  // namespace

void prefer_short_spins(char** arguments) {
  if (std::getenv("OMP_WAIT_POLICY") || std::getenv("GOMP_SPINCOUNT")) return;
  if (setenv("GOMP_SPINCOUNT", kSpins, 1) == 0) execv("/proc/self/exe", arguments);
}

}  // namespace convoy::cli
