// Finds the program's error lines in what ranks write to stderr.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "kernels/base/error.h"

namespace convoy {

class FailureLines {
 public:
  /// More of the stream, cut anywhere.
  void take(std::string_view bytes);
  /// The first line of the form "convoy: error: [rank R] KIND: ...", without its end.
  const std::optional<std::string>& first() const { return first_; }
  /// Whether nothing came after that line.
  bool first_is_last() const { return first_ && last_line_ == *first_ && line_.empty(); }

 private:
  std::string line_;  // begun
  std::string last_line_;
  std::optional<std::string> first_;
};

/// The kind that an error line tells.
std::optional<ErrorKind> kind_of(const std::string& line);

}  // namespace convoy
