#include "cli/help.h"

#include <fmt/core.h>

#include <algorithm>

#include "cli/flags.h"

namespace convoy::cli {
namespace {

constexpr std::size_t kIndent = 28;  // column of the texts
constexpr std::size_t kColumns = 100;

/// Breaks `text` at spaces; every line but the first is indented.
std::string wrap(const std::string& text) {
  std::string out;
  std::size_t column = kIndent;
  std::size_t start = 0;
  while (start < text.size()) {
    std::size_t end = std::min(text.find(' ', start), text.size());
    std::string word = text.substr(start, end - start);
    if (column > kIndent && column + 1 + word.size() > kColumns) {
      out += "\n" + std::string(kIndent, ' ');
      column = kIndent;
    } else if (column > kIndent) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
    start = end + 1;
  }
  return out;
}

std::string flag_line(const Flag& flag) {
  std::string left = "  --" + flag.name + (flag.value.empty() ? "" : " " + flag.value);
  std::string initial = default_text(flag);
  std::string text = flag.help + (initial.empty() ? "" : " (" + initial + ")");
  std::string gap = left.size() + 2 > kIndent ? "\n" + std::string(kIndent, ' ')
                                              : std::string(kIndent - left.size(), ' ');
  return left + gap + wrap(text) + "\n";
}

std::string group_help(const Command& command, Group group, bool all) {
  std::string lines;
  for (const Flag& flag : all_flags()) {
    bool shown = flag.group == group && (all || flag.use == Use::common);
    if (shown && command.accepts(flag)) lines += flag_line(flag);
  }
  return lines.empty() ? "" : fmt::format("\n{}:\n{}", name(group), lines);
}

}  // namespace

std::string program_help() {
  std::string text =
      "usage: convoy COMMAND [flags]\n"
      "Trains convolutional networks, and uses what was trained.\n\n"
      "commands:\n";
  for (const Command& command : all_commands()) {
    text += fmt::format("  {:<12}{}\n", command.name, command.sentence);
  }
  return text +
         "\nconvoy COMMAND -h tells more; convoy --version.\n"
         "exit codes: 0 done, 1 internal, 2 usage, 3 data, 4 checkpoint, 5 communication, 6 "
         "numerics,\n  7 resource, 130 Ctrl-C, 143 SIGTERM";
}

std::string command_help(const Command& command, bool all) {
  std::string operands = command.operands.empty() ? "" : " " + command.operands;
  std::string text = fmt::format("usage: convoy {} [flags]{}\n{}\n\nexamples:\n", command.name,
                                 operands, command.sentence);
  for (const std::string& example : command.examples) text += "  " + example + "\n";
  for (Group group : {Group::model, Group::data, Group::optimization, Group::layout, Group::run,
                      Group::program}) {
    text += group_help(command, group, all);
  }
  text += all ? "\nEach flag may also be a variable (CONVOY_IMAGE_SIZE for --image-size) or a key "
                "of the config\nfile; a flag wins over a variable, a variable over the file."
              : "\nconvoy " + command.name + " --help-all shows all flags.";
  return text;
}

}  // namespace convoy::cli
