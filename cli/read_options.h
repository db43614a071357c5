// Options of a command from all places: flag, CONVOY_* variable, config file, default, in this
// order of precedence.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/command_line.h"
#include "cli/options.h"

namespace convoy::cli {

/// Name and value of each environment variable that starts with CONVOY_.
using Variables = std::vector<std::pair<std::string, std::string>>;

/// Those of this process.
Variables convoy_variables();

/// Sets what the command line, the variables and the config file say. An empty variable is not set.
/// Variables and config keys may name settings that the command has no use for; flags may not. The
/// notes explain aliases and name variables that look misspelt.
Options read_options(const CommandLine& line, const Variables& variables);

/// Whether a flag, a variable or the config file set `name`.
bool was_given(const Options& options, std::string_view name);

/// Of two settings that exclude each other, both given, resets the one from the weaker source; of
/// equally strong ones neither.
void settle_rivals(Options& options, const char* one, const char* other);

}  // namespace convoy::cli
