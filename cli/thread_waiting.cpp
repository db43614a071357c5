#include "cli/thread_waiting.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>

namespace convoy::cli {
namespace {

// Some microseconds. By default libgomp spins for milliseconds, and where another program wants the
// same cores a training step takes up to ten times as long: the spinning thread holds the core that
// the thread it waits for needs.
constexpr const char* kSpins = "1000";

}  // namespace

void prefer_short_spins(char** arguments) {
  if (std::getenv("OMP_WAIT_POLICY") || std::getenv("GOMP_SPINCOUNT")) return;
  // By its real path: the process keeps its name.
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error || setenv("GOMP_SPINCOUNT", kSpins, 1) != 0) return;
  execv(program.c_str(), arguments);
}

}  // namespace convoy::cli
