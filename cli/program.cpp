#include "cli/program.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <optional>
#include <thread>

#include "cli/command.h"
#include "cli/command_line.h"
#include "cli/failure.h"
#include "cli/help.h"
#include "cli/read_options.h"
#include "cli/setup.h"
#include "comm/world.h"
#include "kernels/base/error.h"

namespace convoy::cli {
namespace {

/// Whether `flag` stands among the words before "--".
bool asks_for(const std::vector<std::string>& words, std::string_view flag) {
  auto end = std::find(words.begin(), words.end(), "--");
  return std::find(words.begin(), end, flag) != end;
}

bool asks_for_help(const std::vector<std::string>& words) {
  return asks_for(words, "-h") || asks_for(words, "--help") || asks_for(words, "--help-all");
}

void check_accepted(const Command& command, const CommandLine& line) {
  for (const Assignment& assignment : line.assignments) {
    CONVOY_CHECK(command.accepts(*assignment.flag), "{} does not go with convoy {}",
                 assignment.value.origin, command.name);
  }
}

void check_operands(const Command& command, const Options& options) {
  bool none = command.operands.empty() && !options.operands.empty();
  CONVOY_CHECK(!none, "{} takes no operand, but \"{}\" is given", command.name,
               options.operands.front());
}

/// `convoy train DIR` is `convoy train --data folder:DIR`.
void take_folder(const Command& command, Options& options) {
  if (command.operands != "[DIR]" || options.operands.empty()) return;
  CONVOY_CHECK(options.operands.size() == 1, "{} takes one folder, but \"{}\" follows",
               command.name, options.operands[1]);
  options.settings.data = "folder:" + options.operands[0];
  options.given.push_back({"data", Source::flag});
}

int run_command(const Command& command, const std::vector<std::string>& words) {
  CommandLine line = read_command_line(words);
  check_accepted(command, line);
  Options options = read_options(line, convoy_variables());
  check_operands(command, options);
  take_folder(command, options);
  return command.run(options);
}

/// The command's name, of two words for bench, and what follows it.
std::pair<std::string, std::vector<std::string>> split_command(
    const std::vector<std::string>& words) {
  bool two = words[0] == "bench" && words.size() > 1 && !words[1].starts_with('-');
  if (two) return {"bench " + words[1], {words.begin() + 2, words.end()}};
  return {words[0], {words.begin() + 1, words.end()}};
}

/// What stands before any command: help and version.
std::optional<std::string> program_text(const std::string& word) {
  if (word == "--version") return "convoy " CONVOY_VERSION;
  if (word == "-h" || word == "--help" || word == "--help-all" || word == "help") {
    return program_help();
  }
  CONVOY_CHECK(!word.starts_with('-'), "{} comes before the command: convoy COMMAND [flags]", word);
  return {};
}

std::string help_of(const std::string& name, bool all) {
  if (name != "bench") return command_help(find_command(name), all);
  return help_of("bench step", all) + "\n\n" + help_of("bench data", all) + "\n\n" +
         help_of("bench allreduce", all);
}

/// What is wrong with a command line is wrong in every process that a launcher has started. The
/// first one says it, and launchers end the others then; these speak only where that is not so.
void let_the_first_rank_speak() {
  constexpr std::chrono::seconds kPatience(3);
  try {
    if (discover_world().rank > 0) std::this_thread::sleep_for(kPatience);
  } catch (const Error&) {
    // The launcher's own variables are what is wrong.
  }
}

int run(const std::vector<std::string>& words) {
  CONVOY_CHECK(!words.empty(), "no command is given; convoy -h lists them");
  if (auto text = program_text(words[0])) {
    print_line(*text);
    return 0;
  }
  auto [name, rest] = split_command(words);
  if (asks_for_help(rest)) {
    print_line(help_of(name, asks_for(rest, "--help-all")));
    return 0;
  }
  CONVOY_CHECK(
      name != "bench",
      "bench needs what to measure: convoy bench step|data|allreduce|split|kernels [flags]");
  return run_command(find_command(name), rest);
}

}  // namespace

int run_program(const std::vector<std::string>& words) {
  try {
    return run(words);
  } catch (...) {
    Failure failure = describe_failure(std::current_exception());
    let_the_first_rank_speak();
    std::fflush(stdout);
    std::fprintf(stderr, "%s\n", failure.line.c_str());
    return failure.code;
  }
}

}  // namespace convoy::cli
