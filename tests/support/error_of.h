// The error that a call must throw.
#pragma once

#include <functional>
#include <optional>

#include "kernels/base/error.h"
#include "tests/support/catch.h"

namespace convoy::test {

/// The convoy::Error that `call` throws; none, or another exception, fails the test.
inline Error error_of(const std::function<void()>& call) {
  std::optional<Error> caught;
  try {
    call();
  } catch (const Error& error) {
    caught = error;
  }
  REQUIRE(caught.has_value());
  return *caught;
}

/// Checks kind and text of the error that `call` throws.
inline void check_error(const std::function<void()>& call, ErrorKind kind,
                        const std::string& text) {
  const Error error = error_of(call);
  CHECK(std::string(name(error.kind())) == name(kind));
  CHECK(error.text() == text);
}

}  // namespace convoy::test
