#include "engine/parallel/pipeline/draw.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "kernels/base/error.h"

namespace convoy {
namespace {

constexpr int kLetters = 26;

char letter(const Instruction& instruction, bool small_weights) {
  const int k = instruction.micro_batch;
  switch (instruction.op) {
    case ScheduleOp::forward:
      return static_cast<char>('0' + k % 10);
    case ScheduleOp::backward_input:
      return static_cast<char>('a' + k % kLetters);
    case ScheduleOp::backward_weight:
      return static_cast<char>((small_weights ? 'a' : 'A') + k % kLetters);
    case ScheduleOp::step:
      return '|';
    default:
      return '.';  // transfers and all-reduces run beside the worker, which waits
  }
}

// The columns whose middle lies within a span.
std::pair<std::size_t, std::size_t> columns(const ScheduleSpan& span, double unit) {
  auto column = [unit](double time) {
    return static_cast<std::size_t>(std::max(0.0, std::ceil(time / unit - 0.5)));
  };
  return {column(span.begin), column(span.end)};
}

void trim(std::string& row) {
  row.resize(row.find_last_not_of(' ') + 1);
}

}  // namespace

std::vector<std::string> draw_worker(const Timeline& timeline, int worker,
                                     const DrawOptions& options) {
  CONVOY_CHECK(options.unit_s > 0, "schedule: columns of {} s, expected more than 0",
               options.unit_s);
  const auto width = static_cast<std::size_t>(std::ceil(timeline.makespan / options.unit_s - 0.5));
  std::map<int, std::string> rows;
  for (const ScheduleSpan& span : timeline.spans[worker]) {
    rows.try_emplace(span.instruction.stage, width, '.');
  }
  for (const ScheduleSpan& span : timeline.spans[worker]) {
    const char mark = letter(span.instruction, options.small_weights);
    if (mark == '.') continue;
    const auto [first, last] = columns(span, options.unit_s);
    for (auto& [stage, row] : rows) {
      const char own = stage == span.instruction.stage ? mark : ' ';
      for (std::size_t i = first; i < std::min(last, width); ++i) row[i] = own;
    }
  }
  std::vector<std::string> drawn;
  for (auto& [stage, row] : rows) {
    trim(row);
    drawn.push_back(row);
  }
  return drawn;
}

std::string draw(const Timeline& timeline, const DrawOptions& options) {
  std::string text;
  for (std::size_t worker = 0; worker < timeline.spans.size(); ++worker) {
    std::string label = fmt::format("W{}", worker);
    for (const std::string& row : draw_worker(timeline, static_cast<int>(worker), options)) {
      text += fmt::format("{:<4}{}\n", label, row);
      label.clear();
    }
  }
  return text;
}

}  // namespace convoy
