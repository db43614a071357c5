// Where a function was called. std::source_location with compilers that have it: clang does from
// version 16 on, and older ones know the caller by built-in functions alone.
#pragma once

#include <version>

#ifdef __cpp_lib_source_location
#include <source_location>
#else
#include <cstdint>
#endif

namespace convoy {

#ifdef __cpp_lib_source_location
using CallSite = std::source_location;
#else
/// What is used of std::source_location. Of a lambda the function's name is "operator()".
class CallSite {
 public:
  static constexpr CallSite current(const char* file = __builtin_FILE(),
                                    const char* function = __builtin_FUNCTION(),
                                    std::uint_least32_t line = __builtin_LINE()) {
    CallSite site;
    site.file_ = file;
    site.function_ = function;
    site.line_ = line;
    return site;
  }
  constexpr const char* file_name() const { return file_; }
  constexpr const char* function_name() const { return function_; }
  constexpr std::uint_least32_t line() const { return line_; }

 private:
  const char* file_ = "";
  const char* function_ = "";
  std::uint_least32_t line_ = 0;
};
#endif

}  // namespace convoy
