// The main function of all test programs. Catch returns the number of failures, and 77 of them
// would be taken for "skipped" by Meson: any failure is 1 here.
#define CATCH_CONFIG_RUNNER
#include "tests/support/catch.h"

int main(int argc, char** argv) {
  return Catch::Session().run(argc, argv) == 0 ? 0 : 1;
}
