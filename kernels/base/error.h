// The one exception type of Convoy. Its kind decides the program's exit code; its text starts with
// the thing that failed and holds the values: "conv2d: x has 3 channels, w expects 4".
#pragma once

#include <fmt/core.h>

#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

namespace convoy {

/// What went wrong; the number is the program's exit code.
enum class ErrorKind {
  internal = 1,
  usage = 2,
  data = 3,
  checkpoint = 4,
  communication = 5,
  numerics = 6,
  resource = 7,
};

/// "usage", "data", ...
const char* name(ErrorKind kind);

/// Kind, text, place in the source, and the rank at fault where one is known.
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, std::string text, std::string place = {}, std::optional<int> rank = {});

  ErrorKind kind() const { return kind_; }
  const std::string& text() const { return text_; }
  /// "file.cpp:12", empty where the error came from elsewhere.
  const std::string& place() const { return place_; }
  std::optional<int> rank() const { return rank_; }
  /// The same error, put down to `rank`.
  Error with_rank(int rank) const { return {kind_, text_, place_, rank}; }

 private:
  ErrorKind kind_;
  std::string text_;
  std::string place_;
  std::optional<int> rank_;
};

/// One line: `[rank R] KIND: text`.
std::string describe(const Error& error);

/// `exception` as one of ours: those of the standard library have kinds too.
Error to_error(const std::exception_ptr& exception);

}  // namespace convoy

#define CONVOY_PLACE_TEXT2(line) #line
#define CONVOY_PLACE_TEXT(line) CONVOY_PLACE_TEXT2(line)
#define CONVOY_PLACE __FILE__ ":" CONVOY_PLACE_TEXT(__LINE__)

/// Throws Error of `kind` (a name of ErrorKind) with a formatted text.
#define CONVOY_FAIL(kind, ...) \
  throw ::convoy::Error(::convoy::ErrorKind::kind, ::fmt::format(__VA_ARGS__), CONVOY_PLACE)

/// The caller's fault: `usage` unless `condition` holds. Always on.
#define CONVOY_CHECK(condition, ...)                   \
  do {                                                 \
    if (!(condition)) CONVOY_FAIL(usage, __VA_ARGS__); \
  } while (false)

/// Our own fault: `internal` unless `condition` holds. Always on: none stands in an inner loop.
#define CONVOY_DCHECK(condition, ...)                     \
  do {                                                    \
    if (!(condition)) CONVOY_FAIL(internal, __VA_ARGS__); \
  } while (false)
