// Texts of -h and --help-all, made from the tables of commands and flags.
#pragma once

#include <string>

#include "cli/command.h"

namespace convoy::cli {

/// Usage, one line a command.
std::string program_help();

/// Usage, one sentence, examples, and the common flags or all of them.
std::string command_help(const Command& command, bool all);

}  // namespace convoy::cli
