// Settings that this build cannot carry out, or that contradict each other: each is a `usage`
// error, none is passed over in silence.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/options.h"

namespace convoy::cli {

/// Of settings that exclude each other drops those from weaker sources, and checks the rest.
void check_settings(Options& options);

/// What is put up with: more threads or devices than cores.
std::vector<std::string> device_warnings(const Settings& settings);

/// What was given, but changes nothing in this build.
std::vector<std::string> idle_notes(const Options& options);

/// Value of an environment variable, null if it is not set.
using Environment = std::function<const char*(const char*)>;

/// A launcher that started several processes would get as many runs of one process each: `usage`
/// with the variable and both sizes.
void check_launcher(const Environment& environment);

}  // namespace convoy::cli
