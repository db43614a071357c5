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

/// `usage` unless --replicas, where given, is the number of workers of all processes.
void check_replicas(const Settings& settings, int workers);

/// What is put up with: more threads or devices than cores. `workers` share this process's cores.
std::vector<std::string> device_warnings(const Settings& settings, int workers = 1);

/// What was given, but changes nothing in this build, or for so few workers.
std::vector<std::string> idle_notes(const Options& options, int workers = 1);

/// Value of an environment variable, null if it is not set.
using Environment = std::function<const char*(const char*)>;

/// For commands that one worker runs: `usage` for several devices, or where a launcher has started
/// several processes: the variable and its value are named.
void check_one_worker(const Settings& settings, const std::string& command,
                      const Environment& environment);

}  // namespace convoy::cli
