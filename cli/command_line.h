// Splits the words after the command into flags with values and operands. Nothing is set yet.
#pragma once

#include <string>
#include <vector>

#include "cli/flag.h"
#include "cli/value.h"

namespace convoy::cli {

/// A flag to be set from a text.
struct Assignment {
  const Flag* flag = nullptr;
  Value value;
};

struct CommandLine {
  std::vector<Assignment> assignments;
  std::vector<std::string> operands;
  std::vector<std::string> notes;  ///< what an alias means here where that may surprise
};

/// Reads "--name value", "--name=value", "-j 4", "-j4"; words after "--" are operands. `usage` for
/// unknown flags, look-alikes and missing values.
CommandLine read_command_line(const std::vector<std::string>& words);

}  // namespace convoy::cli
