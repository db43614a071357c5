// What `verify` has found, as lines and as the program's end.
#pragma once

#include <string>
#include <vector>

#include "cli/options.h"
#include "engine/train/verify.h"

namespace convoy::cli {

/// One line of JSON with --json, else a few of text.
std::vector<std::string> verify_lines(const Options& options, const VerifyResult& result);

/// `numerics` with the first difference unless the layout is equal to one device.
void check_equal(const VerifyResult& result);

}  // namespace convoy::cli
