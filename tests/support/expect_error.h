// Checks of errors: the kind and the parts of the text that a user needs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/error.h"
#include "tests/support/catch.h"

namespace convoy::testing {

/// Runs `body`, which must throw an Error of `kind` whose one-line text holds all of `parts`.
template <class Body>
void expect_error(ErrorKind kind, const std::vector<std::string_view>& parts, Body body) {
  std::string text;
  try {
    body();
  } catch (const Error& error) {
    text = error.text();
    INFO(text);
    CHECK(name(error.kind()) == std::string(name(kind)));
  }
  INFO("error text: '" << text << "'");
  CHECK_FALSE(text.empty());
  CHECK(text.find('\n') == text.npos);
  for (std::string_view part : parts) {
    INFO("wanted: '" << part << "'");
    CHECK(text.find(part) != text.npos);
  }
}

}  // namespace convoy::testing
