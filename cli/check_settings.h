// Settings that this build cannot carry out, or that contradict each other: each is a `usage`
// error, none is passed over in silence.
#pragma once

#include <string>
#include <vector>

#include "cli/options.h"
#include "engine/train/layout.h"

namespace convoy::cli {

/// Of settings that exclude each other drops those from weaker sources, and checks the rest.
void check_settings(Options& options);

/// What is put up with: more threads or devices than cores. `workers` share this process's cores.
std::vector<std::string> device_warnings(const Settings& settings, int workers = 1);

/// What was given but changes nothing in this build or layout, and what most likely is not meant.
std::vector<std::string> idle_notes(const Options& options, const Layout& layout = {});

}  // namespace convoy::cli
