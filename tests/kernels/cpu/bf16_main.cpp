// The main function of tests of bf16 on the CPU: without instructions for it they are skipped.
#define CATCH_CONFIG_RUNNER
#include <cstdio>

#include "kernels/backends.h"
#include "tests/support/catch.h"

int main(int argc, char** argv) {
  const std::string problem = convoy::cpu::why_no_bf16();
  if (!problem.empty()) {
    std::printf("skipped, no bf16 here: %s\n", problem.c_str());
    return 77;
  }
  return Catch::Session().run(argc, argv) == 0 ? 0 : 1;
}
