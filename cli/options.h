// What a command was asked for: the settings of a run and what concerns the program alone.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/train/settings.h"

namespace convoy::cli {

struct Options {
  Settings settings;
  bool json = false;
  bool logits = false;       // predict
  std::int64_t repeats = 3;  // bench
  std::string config;        // --config FILE
  std::vector<std::string> operands;
  std::vector<std::string> given;  // names of the flags set anywhere, in order
};

}  // namespace convoy::cli
