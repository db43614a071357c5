// Words that people of other programs type: those that mean the same are taken, those whose meaning
// differs are refused with the right flag.
#pragma once

#include <string>
#include <string_view>

namespace convoy::cli {

/// A flag as typed, in Convoy's words. `value` is set where the alias brings the value with it.
struct Meaning {
  std::string name;
  std::string prefix;  ///< goes before the typed value: "folder:"
  std::string value;   ///< the whole value, none is typed: "bf16"
};

/// What `typed` ("-j", "--arch", "--batch") means; the name is `typed` without dashes if it is no
/// alias. `usage` for a look-alike, with the flag that is meant.
Meaning meaning_of(std::string_view typed);

}  // namespace convoy::cli
