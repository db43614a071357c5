#include "comm/launch/failure_lines.h"

#include <algorithm>

namespace convoy {
namespace {

constexpr std::string_view kStart = "convoy: error: ";
constexpr std::size_t kLongest = 65536;  // of a line: more is no line of ours

}  // namespace

void FailureLines::take(std::string_view bytes) {
  for (char c : bytes) {
    if (c != '\n') {
      if (line_.size() < kLongest) line_ += c;
      continue;
    }
    if (!first_ && kind_of(line_)) first_ = line_;
    last_line_ = std::move(line_);
    line_.clear();
  }
}

std::optional<ErrorKind> kind_of(const std::string& line) {
  if (!line.starts_with(kStart)) return {};
  std::string_view rest = std::string_view(line).substr(kStart.size());
  if (rest.starts_with("[rank ")) rest = rest.substr(std::min(rest.find("] ") + 2, rest.size()));
  for (int code = 1; code <= static_cast<int>(ErrorKind::resource); ++code) {
    const auto kind = static_cast<ErrorKind>(code);
    if (rest.starts_with(std::string(name(kind)) + ": ")) return kind;
  }
  return {};
}

}  // namespace convoy
