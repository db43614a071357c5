#include "cli/help.h"

#include "cli/flags.h"
#include "tests/cli/cli_test.h"

using namespace convoy::cli;

namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::size_t longest_line(const std::string& text) {
  std::size_t longest = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) longest = std::max(longest, line.size());
  return longest;
}

}  // namespace

TEST_CASE("the program's help names every command") {
  for (const Command& command : all_commands()) CHECK(has(program_help(), command.sentence));
}

TEST_CASE("every command has three examples and a help that fits the line") {
  for (const Command& command : all_commands()) {
    INFO(command.name);
    CHECK(command.examples.size() == 3);
    std::string text = command_help(command, true);
    CHECK(text.starts_with("usage: convoy " + command.name + " [flags]"));
    CHECK(longest_line(text) <= 100);
    for (const std::string& flag : command.flags) CHECK(find_flag(flag) != nullptr);
  }
}

TEST_CASE("-h shows the common flags of a command, --help-all all of them, with defaults") {
  const Command& train = find_command("train");
  std::string brief = command_help(train, false);
  std::string full = command_help(train, true);
  CHECK(has(brief, "--batch N"));
  CHECK(!has(brief, "--label-smoothing"));
  CHECK(has(brief, "convoy train --help-all shows all flags"));
  for (const Flag& flag : all_flags()) {
    INFO(flag.name);
    CHECK(has(full, "  --" + flag.name) == train.accepts(flag));
  }
  CHECK(has(full, "images of a batch, over all replicas (64)"));
  CHECK(has(full, "outputs of the last layer (the data's)"));
  CHECK(!train.accepts(*find_flag("logits")));
}

TEST_CASE("unknown commands are told with the nearest") {
  CHECK(usage_error([] { find_command("trian"); }) ==
        "\"trian\" is no command of convoy; did you mean train?; convoy -h lists them");
  CHECK(usage_error([] { find_command("bench stp"); }).find("bench step?") != std::string::npos);
}
