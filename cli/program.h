// The program behind main(): from words to an exit code.
#pragma once

#include <string>
#include <vector>

namespace convoy::cli {

/// Runs `convoy WORDS...`. Errors become one line on stderr; returns the exit code.
int run_program(const std::vector<std::string>& words);

}  // namespace convoy::cli
