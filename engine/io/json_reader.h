// A pull reader of JSON texts from strangers: the caller says what must come next, so nothing nests
// deeper than the caller's own code and nothing is kept that was not asked for.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace convoy {

/// Walks over `text`; each failure is `checkpoint` and names the file and the byte.
class JsonReader {
 public:
  JsonReader(std::string_view text, std::string path) : text_(text), path_(std::move(path)) {}

  /// Skips white space and takes `c`, or fails.
  void expect(char c);
  /// Takes `c` if it comes next.
  bool accept(char c);
  /// A string with its escapes resolved; UTF-8 is checked.
  std::string string();
  /// A whole number without sign, below 2^63.
  std::int64_t number();
  /// Fails unless only spaces are left.
  void expect_end();
  /// `checkpoint`: `path`: `what`, at which byte.
  [[noreturn]] void fail(const std::string& what) const;

 private:
  void skip_space();
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void escape(std::string& out);
  std::uint32_t hex4();
  std::uint32_t code_point();

  std::string_view text_;
  std::string path_;
  std::size_t at_ = 0;
};

}  // namespace convoy
