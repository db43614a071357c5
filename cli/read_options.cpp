#include "cli/read_options.h"

#include <algorithm>
#include <optional>

#include "cli/config_file.h"
#include "cli/flags.h"
#include "cli/nearest.h"
#include "kernels/base/error.h"

extern char** environ;

namespace convoy::cli {
namespace {

void assign(Options& options, const std::vector<Assignment>& assignments, Source source) {
  for (const Assignment& assignment : assignments) {
    assignment.flag->binding.set(options, assignment.value);
    options.given.push_back({assignment.flag->name, source});
  }
}

std::vector<std::string> variable_names() {
  std::vector<std::string> names;
  for (const Flag& flag : all_flags()) names.push_back(variable(flag));
  return names;
}

/// Other programs may have variables of that prefix too, so a foreign one is no error.
std::vector<std::string> misspelt(const Variables& variables) {
  std::vector<std::string> notes;
  std::vector<std::string> known = variable_names();
  for (const auto& [name, value] : variables) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    for (const std::string& other : known) {
      if (edit_distance(name, other) > 2) continue;
      notes.push_back(fmt::format("{} is no setting; did you mean {}?", name, other));
      break;
    }
  }
  return notes;
}

std::vector<Assignment> from_variables(const Variables& variables) {
  std::vector<Assignment> assignments;
  for (const Flag& flag : all_flags()) {
    for (const auto& [name, value] : variables) {
      if (name != variable(flag) || value.empty()) continue;
      assignments.push_back({&flag, {value, name}});
    }
  }
  return assignments;
}

/// An emulated GPU takes minutes for what its worker's watchdog sees as one instruction.
void settle_timeout(Options& options) {
  constexpr double kEmulatedTimeout = 600;
  const auto& devices = options.settings.devices;
  const bool emulated = std::any_of(devices.begin(), devices.end(), [](const std::string& name) {
    return name.starts_with("emu");
  });
  if (emulated && !was_given(options, "comm-timeout")) {
    options.settings.comm_timeout = kEmulatedTimeout;
  }
}

/// The file that a flag, else a variable names; empty if none does.
std::string config_path(const std::vector<Assignment>& variables,
                        const std::vector<Assignment>& flags) {
  std::string path;
  for (const auto* assignments : {&variables, &flags}) {
    for (const Assignment& assignment : *assignments) {
      if (assignment.flag->name == "config") path = assignment.value.text;
    }
  }
  return path;
}

/// The strongest source that names the setting.
std::optional<Source> source_of(const Options& options, std::string_view name) {
  std::optional<Source> source;
  for (const Given& given : options.given) {
    if (given.name == name) source = std::max(source.value_or(given.source), given.source);
  }
  return source;
}

void drop(Options& options, const std::string& name) {
  find_flag(name)->binding.reset(options);
  std::erase_if(options.given, [&](const Given& given) { return given.name == name; });
}

}  // namespace

bool was_given(const Options& options, std::string_view name) {
  return source_of(options, name).has_value();
}

void settle_rivals(Options& options, const char* one, const char* other) {
  std::optional<Source> first = source_of(options, one);
  std::optional<Source> second = source_of(options, other);
  if (first && second && *first != *second) drop(options, *first < *second ? one : other);
}

Variables convoy_variables() {
  Variables variables;
  for (char** entry = environ; *entry; ++entry) {
    std::string_view text = *entry;
    std::size_t equals = text.find('=');
    if (!text.starts_with("CONVOY_") || equals == std::string_view::npos) continue;
    variables.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  return variables;
}

Options read_options(const CommandLine& line, const Variables& variables) {
  Options options;
  options.notes = misspelt(variables);
  options.notes.insert(options.notes.end(), line.notes.begin(), line.notes.end());
  std::vector<Assignment> from_environment = from_variables(variables);
  std::string path = config_path(from_environment, line.assignments);
  if (!path.empty()) assign(options, read_config_file(path), Source::config_file);
  assign(options, from_environment, Source::variable);
  assign(options, line.assignments, Source::flag);
  options.operands = line.operands;
  settle_timeout(options);
  return options;
}

}  // namespace convoy::cli
