// Settings from a TOML file: `key = value` at the top level, keys named as the flags.
#pragma once

#include <string>
#include <vector>

#include "cli/command_line.h"

namespace convoy::cli {

/// The file's keys as assignments; errors are `usage` and name file and line.
std::vector<Assignment> read_config_file(const std::string& path);

}  // namespace convoy::cli
