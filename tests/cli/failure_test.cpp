#include "cli/failure.h"

#include <new>
#include <system_error>

#include "kernels/base/error.h"
#include "tests/support/catch.h"

using namespace convoy;
using namespace convoy::cli;

namespace {

template <class Exception>
Failure failure_of(const Exception& exception) {
  return describe_failure(std::make_exception_ptr(exception));
}

}  // namespace

TEST_CASE("each kind has its exit code and its line") {
  const std::pair<ErrorKind, int> codes[] = {
      {ErrorKind::internal, 1},   {ErrorKind::usage, 2},         {ErrorKind::data, 3},
      {ErrorKind::checkpoint, 4}, {ErrorKind::communication, 5}, {ErrorKind::numerics, 6},
      {ErrorKind::resource, 7}};
  for (auto [kind, code] : codes) {
    Failure failure = failure_of(Error(kind, "what"));
    CHECK(failure.code == code);
    CHECK(failure.line == "convoy: error: " + std::string(name(kind)) + ": what");
  }
}

TEST_CASE("the rank stands in the line, the place where it is our fault") {
  CHECK(failure_of(Error(ErrorKind::data, "what", "a.cpp:1", 3)).line ==
        "convoy: error: [rank 3] data: what");
  CHECK(failure_of(Error(ErrorKind::internal, "what", "a.cpp:1")).line ==
        "convoy: error: internal: what (a.cpp:1)");
}

TEST_CASE("exceptions of the library become kinds") {
  CHECK(failure_of(std::bad_alloc()).code == 7);
  CHECK(failure_of(std::system_error(std::make_error_code(std::errc::no_space_on_device))).code ==
        7);
  CHECK(failure_of(std::system_error(std::make_error_code(std::errc::permission_denied))).code ==
        1);
  CHECK(failure_of(std::runtime_error("odd")).line == "convoy: error: internal: odd");
  CHECK(failure_of(42).line == "convoy: error: internal: an unknown exception");
}

TEST_CASE("the line stays one line") {
  CHECK(failure_of(Error(ErrorKind::data, "a\nb\tc\x1b[2J")).line ==
        "convoy: error: data: a; b\\x09c\\x1B[2J");
}
