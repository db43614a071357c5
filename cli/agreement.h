// What processes compare before they work together.
#pragma once

#include <map>
#include <string>

#include "comm/start_check.h"
#include "engine/train/settings.h"

namespace convoy::cli {

/// The version, the settings that must be equal in all processes (`json`, by their flags' names),
/// and the kind of devices: kinds round differently, so weights would not stay the same.
Facts common_facts(const Settings& settings, const std::map<std::string, std::string>& json);

}  // namespace convoy::cli
