#include "cli/read_options.h"

#include <algorithm>

#include "cli/config_file.h"
#include "cli/flags.h"
#include "cli/nearest.h"
#include "kernels/base/error.h"

extern char** environ;

namespace convoy::cli {
namespace {

void assign(Options& options, const std::vector<Assignment>& assignments) {
  for (const Assignment& assignment : assignments) {
    assignment.flag->binding.set(options, assignment.value);
    options.given.push_back(assignment.flag->name);
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

}  // namespace

bool was_given(const Options& options, std::string_view name) {
  return std::find(options.given.begin(), options.given.end(), name) != options.given.end();
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

ReadOptions read_options(const CommandLine& line, const Variables& variables) {
  ReadOptions read;
  read.notes = misspelt(variables);
  read.notes.insert(read.notes.end(), line.notes.begin(), line.notes.end());
  std::vector<Assignment> from_environment = from_variables(variables);
  std::string path = config_path(from_environment, line.assignments);
  if (!path.empty()) assign(read.options, read_config_file(path));
  assign(read.options, from_environment);
  assign(read.options, line.assignments);
  read.options.operands = line.operands;
  return read;
}

}  // namespace convoy::cli
