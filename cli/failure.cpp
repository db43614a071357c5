#include "cli/failure.h"

#include "kernels/base/error.h"

namespace convoy::cli {
namespace {

/// Control bytes (of file names, of texts of libraries) would break the line or the terminal.
std::string one_line(const std::string& text) {
  std::string out;
  for (unsigned char c : text) {
    if (c == '\n') {
      out += "; ";
    } else if (c < 0x20 || c == 0x7F) {
      out += fmt::format("\\x{:02X}", c);
    } else {
      out += static_cast<char>(c);
    }
  }
  return out;
}

}  // namespace

Failure describe_failure(const std::exception_ptr& exception) {
  Error error = to_error(exception);
  std::string text = describe(error);
  bool ours = error.kind() == ErrorKind::internal && !error.place().empty();
  if (ours) text += " (" + error.place() + ")";
  return {"convoy: error: " + one_line(text), static_cast<int>(error.kind())};
}

}  // namespace convoy::cli
