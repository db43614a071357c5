// Libraries that are opened when they are needed, and what is said where they are not here.
#include "kernels/cuda/vendor/library.h"

#include <cmath>

#include "tests/support/catch.h"
#include "tests/support/expect_error.h"

namespace convoy::testing {
namespace {

using cuda::vendor::Library;

TEST_CASE("vendor libraries: one that is not here is named, with its file") {
  expect_error(ErrorKind::usage, {"--kernels vendor: cuDNN 9 is not here", "libnothing.so.9"},
               [] { Library("cuDNN 9", "libnothing.so.9"); });
}

TEST_CASE("vendor libraries: functions are found by name, missing ones are named") {
  const Library math("the mathematics", "libm.so.6");
  double (*cosine)(double) = nullptr;
  math.find("cos", cosine);
  CHECK(cosine(0.5) == std::cos(0.5));
  expect_error(ErrorKind::usage, {"the mathematics has no cosinus"},
               [&] { math.find("cosinus", cosine); });
}

}  // namespace
}  // namespace convoy::testing
