#include "engine/parallel/pipeline/schedule_text.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <optional>

#include "kernels/base/error.h"

namespace convoy {
namespace {

constexpr std::string_view kSpaces = " \t\r";

// The words of one line, counted from 1, with errors that say where.
class Words {
 public:
  Words(std::string_view line, std::string_view source, int number)
      : rest_(line), source_(source), line_(number) {}

  // The next word, empty at the end of the line.
  std::string_view next() {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(kSpaces), rest_.size()));
    const std::size_t length = std::min(rest_.find_first_of(kSpaces), rest_.size());
    const std::string_view word = rest_.substr(0, length);
    rest_.remove_prefix(length);
    ++word_;
    return word;
  }

  [[noreturn]] void fail(std::string_view word, std::string_view expected) const {
    const std::string found = word.empty() ? "the line ends" : fmt::format("'{}'", word);
    CONVOY_FAIL(usage, "{}: line {}, word {}: {}, expected {}", source_, line_, word_, found,
                expected);
  }

 private:
  std::string_view rest_, source_;
  int line_, word_ = 0;
};

std::optional<int> number(std::string_view text) {
  int value = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (fault != std::errc() || end != text.data() + text.size() || value < 0) return {};
  return value;
}

ScheduleOp parse_op(std::string_view word, const Words& words) {
  const auto* found = std::find(std::begin(kOpNames), std::end(kOpNames), word);
  if (found == std::end(kOpNames)) words.fail(word, "one of RA, SA, F, RG, SG, I, W, AR, ST");
  return static_cast<ScheduleOp>(found - std::begin(kOpNames));
}

Instruction parse_instruction(std::string_view word, Words& words) {
  const ScheduleOp op = parse_op(word, words);
  const std::string_view place = words.next();
  if (of_window(op)) {
    const auto stage = number(place);
    if (!stage) words.fail(place, "a stage");
    return {op, *stage, 0};
  }
  const std::size_t dot = std::min(place.find('.'), place.size());
  const auto stage = number(place.substr(0, dot));
  const auto micro_batch = number(place.substr(std::min(dot + 1, place.size())));
  if (!stage || !micro_batch) words.fail(place, "stage.micro-batch");
  return {op, *stage, *micro_batch};
}

ScheduleLine parse_line(Words words) {
  ScheduleLine line;
  for (std::string_view word = words.next(); !word.empty(); word = words.next()) {
    line.push_back(parse_instruction(word, words));
  }
  return line;
}

}  // namespace

std::string write_schedule(const Schedule& schedule) {
  std::string text;
  for (const ScheduleLine& line : schedule.lines) {
    for (const Instruction& instruction : line) {
      text += (&instruction == line.data() ? "" : "  ") + describe(instruction);
    }
    text += '\n';
  }
  return text;
}

Schedule parse_schedule(std::string_view text, std::string_view source) {
  Schedule schedule;
  for (int number = 1; !text.empty(); ++number) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (line.find_first_not_of(kSpaces) == line.npos || line.front() == '#') continue;
    schedule.lines.push_back(parse_line(Words(line, source, number)));
  }
  CONVOY_CHECK(!schedule.lines.empty(), "{}: no worker's line, expected at least one", source);
  return schedule;
}

}  // namespace convoy
