// Checks of errors: the kind and the text that a user needs.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/error.h"
#include "tests/support/catch.h"

namespace convoy::testing {

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

/// Checks kind and whole text of the error that `call` throws.
inline void check_error(const std::function<void()>& call, ErrorKind kind,
                        const std::string& text) {
  const Error error = error_of(call);
  CHECK(std::string(name(error.kind())) == name(kind));
  CHECK(error.text() == text);
}

/// Runs `call`, which must throw an Error of `kind` whose one-line text holds all of `parts`.
inline void expect_error(ErrorKind kind, const std::vector<std::string_view>& parts,
                         const std::function<void()>& call) {
  const Error error = error_of(call);
  const std::string& text = error.text();
  INFO("error text: '" << text << "'");
  CHECK(std::string(name(error.kind())) == name(kind));
  CHECK(text.find('\n') == text.npos);
  for (std::string_view part : parts) {
    INFO("wanted: '" << part << "'");
    CHECK(text.find(part) != text.npos);
  }
}

}  // namespace convoy::testing
