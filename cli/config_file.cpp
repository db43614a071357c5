#include "cli/config_file.h"

#include <algorithm>

#include "cli/flags.h"
#include "cli/nearest.h"
#include "cli/toml_file.h"
#include "kernels/base/error.h"

namespace convoy::cli {
namespace {

const char* expected(Kind kind) {
  switch (kind) {
    case Kind::toggle:
      return "true or false";
    case Kind::integer:
      return "an integer";
    case Kind::number:
      return "a number";
    case Kind::text:
      return "a string";
    case Kind::text_or_integer:
      return "a string or an integer";
    case Kind::optional_text:
      return "true, false or a string";
    case Kind::list:
      return "a string or an array of strings";
  }
  return "";
}

bool fits(Kind kind, const toml::node& node) {
  switch (kind) {
    case Kind::toggle:
      return node.is_boolean();
    case Kind::integer:
      return node.is_integer();
    case Kind::number:
      return node.is_number();
    case Kind::text:
      return node.is_string();
    case Kind::text_or_integer:
      return node.is_string() || node.is_integer();
    case Kind::optional_text:
      return node.is_string() || node.is_boolean();
    case Kind::list:
      return node.is_string() ||
             (node.is_array() && node.as_array()->is_homogeneous<std::string>());
  }
  return false;
}

/// The value as a flag would be typed.
std::string text_of(const toml::node& node) {
  if (auto text = node.value_exact<std::string>()) return *text;
  if (auto number = node.value_exact<std::int64_t>()) return std::to_string(*number);
  if (auto number = node.value_exact<double>()) return fmt::format("{}", *number);
  if (auto yes = node.value_exact<bool>()) return *yes ? "true" : "false";
  std::string list;
  for (const toml::node& entry : *node.as_array()) {
    list += (list.empty() ? "" : ",") + *entry.value_exact<std::string>();
  }
  return list;
}

Assignment read_entry(const std::string& place, const std::string& key, const toml::node& node) {
  const Flag* flag = find_flag(key);
  CONVOY_CHECK(key != "config", "{}: a config file names no other one", place);
  CONVOY_CHECK(flag, "{}: \"{}\" is no setting of convoy{}", place, key,
               did_you_mean(key, flag_names()));
  CONVOY_CHECK(fits(flag->binding.kind, node), "{}: {} is {}, expected {}", place, key,
               type_name(node), expected(flag->binding.kind));
  return {flag, {text_of(node), place + ": " + key}};
}

}  // namespace

std::vector<Assignment> read_config_file(const std::string& path) {
  toml::table table = parse_toml_file("--config", path);
  // The table is sorted by key; the first error told is to be the first in the file.
  std::vector<std::tuple<std::uint32_t, std::string, const toml::node*>> entries;
  for (auto&& [key, node] : table) {
    entries.emplace_back(key.source().begin.line, std::string(key.str()), &node);
  }
  std::stable_sort(entries.begin(), entries.end(),
                   [](const auto& a, const auto& b) { return std::get<0>(a) < std::get<0>(b); });
  std::vector<Assignment> assignments;
  for (const auto& [line, key, node] : entries) {
    assignments.push_back(read_entry(fmt::format("{}:{}", path, line), key, *node));
  }
  return assignments;
}

}  // namespace convoy::cli
