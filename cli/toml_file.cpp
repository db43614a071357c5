#include "cli/toml_file.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "kernels/base/error.h"

namespace convoy::cli {
namespace {

std::string read_text(const std::string& what, const std::string& path) {
  std::error_code ignored;
  CONVOY_CHECK(!std::filesystem::is_directory(path, ignored), "{}: {} is a folder", what, path);
  std::ifstream file(path, std::ios::binary);
  CONVOY_CHECK(file, "{}: cannot read {}: {}", what, path, std::strerror(errno));
  std::ostringstream text;
  text << file.rdbuf();
  CONVOY_CHECK(!file.bad(), "{}: cannot read {}: {}", what, path, std::strerror(errno));
  return text.str();
}

}  // namespace

const char* type_name(const toml::node& node) {
  if (node.is_string()) return "a string";
  if (node.is_integer()) return "an integer";
  if (node.is_floating_point()) return "a number with a point";
  if (node.is_boolean()) return "true or false";
  if (node.is_array()) return "an array";
  if (node.is_table()) return "a table";
  return "a date or time";
}

toml::table parse_toml_file(const std::string& what, const std::string& path) {
  try {
    return toml::parse(read_text(what, path), path);
  } catch (const toml::parse_error& error) {
    CONVOY_FAIL(usage, "{}:{}: {}", path, error.source().begin.line, error.description());
  }
}

std::string place_of(const std::string& path, const toml::source_region& source) {
  return fmt::format("{}:{}", path, source.begin.line);
}

}  // namespace convoy::cli
