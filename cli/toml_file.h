// Reading TOML: the file as a table, and errors that name file and line.
#pragma once

#include <toml++/toml.h>

#include <string>

namespace convoy::cli {

/// The whole file. `usage` that starts with `what` ("--config") where it cannot be read, and with
/// file and line where it is no TOML.
toml::table parse_toml_file(const std::string& what, const std::string& path);

/// "a string", "an integer", ... for errors.
const char* type_name(const toml::node& node);

/// "FILE:LINE" of a node.
std::string place_of(const std::string& path, const toml::source_region& source);

}  // namespace convoy::cli
