// The one table of flags: names, help, variables, config keys, the echo in the run line and the
// setters all come from it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/flag.h"

namespace convoy::cli {

/// All flags, in the order of the help.
const std::vector<Flag>& all_flags();

/// The flag of this name (no dashes), null if there is none.
const Flag* find_flag(std::string_view name);

/// Names of all flags, for "did you mean".
std::vector<std::string> flag_names();

/// The default as the help prints it.
std::string default_text(const Flag& flag);

/// Adds all settings to `line`, keys named as the flags. A setting left open is null.
void echo_settings(const Options& options, JsonObject& line);
/// Adds those of `names`.
void echo_settings(const Options& options, const std::vector<std::string>& names, JsonObject& line);

}  // namespace convoy::cli
