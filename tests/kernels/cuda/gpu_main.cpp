// The main function of tests on a GPU: without one they are skipped.
#define CATCH_CONFIG_RUNNER
#include <cstdio>

#include "kernels/base/context.h"
#include "tests/support/catch.h"

int main(int argc, char** argv) {
  if (convoy::device_count(convoy::DeviceType::cuda) == 0) {
    std::puts("no GPU here");
    return 77;
  }
  return Catch::Session().run(argc, argv) == 0 ? 0 : 1;
}
