// The one place that turns what was thrown into the line on stderr and the exit code.
#pragma once

#include <exception>
#include <string>

namespace convoy::cli {

struct Failure {
  std::string line;  ///< "convoy: error: KIND: ...", no line break inside or at the end
  int code = 1;
};

/// What `exception` means to the user.
Failure describe_failure(const std::exception_ptr& exception);

}  // namespace convoy::cli
