// The commands of the program: what each is for, which flags it takes, what runs it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/flag.h"
#include "cli/options.h"

namespace convoy::cli {

struct Command {
  std::string name;
  std::string operands;  ///< as in the usage line: "FILE..."
  std::string sentence;
  std::vector<std::string> examples;
  std::vector<Group> groups;       ///< all flags of these
  std::vector<std::string> flags;  ///< and these
  int (*run)(Options&) = nullptr;  ///< returns the exit code; errors are thrown

  bool accepts(const Flag& flag) const;
};

/// All commands, in the order of the help.
const std::vector<Command>& all_commands();

/// The command of this name; `usage` with the nearest name if there is none, or if this build
/// lacks it.
const Command& find_command(std::string_view name);

}  // namespace convoy::cli
