// The main function of every test program. Catch2 returns the number of failed checks, and 77 of
// them would read as "skipped": any failure is 1 here.
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#else
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>
#endif

int main(int argc, char** argv) {
  return Catch::Session().run(argc, argv) == 0 ? 0 : 1;
}
