// Accounts and spans as words with spaces between, for the way from one process to another.
#include <fmt/format.h>

#include <charconv>
#include <string_view>
#include <system_error>

#include "engine/parallel/pipeline/spans.h"
#include "kernels/base/error.h"

namespace convoy {
namespace {

class Words {
 public:
  explicit Words(std::string_view text) : rest_(text) {}

  template <class T>
  T next() {
    T value = {};
    const char* stop = rest_.data() + rest_.size();
    const auto [end, code] = std::from_chars(rest_.data(), stop, value);
    CONVOY_DCHECK(code == std::errc() && end != stop && *end == ' ',
                  "what another process told of its workers is damaged");
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()) + 1);
    return value;
  }
  bool done() const { return rest_.empty(); }

 private:
  std::string_view rest_;
};

template <class... T>
void add(std::string& text, const T&... values) {
  ((text += fmt::format("{} ", values)), ...);
}

void add_state_seconds(std::string& text, const StateSeconds& seconds) {
  for (const double value : seconds) add(text, value);
}

StateSeconds next_state_seconds(Words& words) {
  StateSeconds seconds = {};
  for (double& value : seconds) value = words.next<double>();
  return seconds;
}

void add_spans(std::string& text, const std::vector<Span>& spans) {
  add(text, spans.size());
  for (const Span& span : spans) {
    const Instruction& instruction = span.instruction;
    add(text, static_cast<int>(span.track), static_cast<int>(span.state),
        static_cast<int>(instruction.op), instruction.stage, instruction.micro_batch, span.begin,
        span.end);
  }
}

std::vector<Span> next_spans(Words& words) {
  std::vector<Span> spans(words.next<std::size_t>());
  for (Span& span : spans) {
    span.track = static_cast<SpanTrack>(words.next<int>());
    span.state = static_cast<WorkerState>(words.next<int>());
    span.instruction.op = static_cast<ScheduleOp>(words.next<int>());
    span.instruction.stage = words.next<int>();
    span.instruction.micro_batch = words.next<int>();
    span.begin = words.next<double>();
    span.end = words.next<double>();
  }
  return spans;
}

}  // namespace

std::string write_accounts(const std::vector<WorkerAccount>& accounts) {
  std::string text;
  for (const WorkerAccount& account : accounts) {
    add(text, account.worker, account.replica, account.stages.size());
    for (const int stage : account.stages) add(text, stage);
    add(text, account.steps);
    add_state_seconds(text, account.measured);
    add_state_seconds(text, account.predicted);
    add(text, account.peak_bytes, account.predicted_peak_bytes);
  }
  return text;
}

std::vector<WorkerAccount> read_accounts(const std::string& text) {
  std::vector<WorkerAccount> accounts;
  for (Words words(text); !words.done();) {
    WorkerAccount& account = accounts.emplace_back();
    account.worker = words.next<int>();
    account.replica = words.next<int>();
    account.stages.resize(words.next<std::size_t>());
    for (int& stage : account.stages) stage = words.next<int>();
    account.steps = words.next<std::int64_t>();
    account.measured = next_state_seconds(words);
    account.predicted = next_state_seconds(words);
    account.peak_bytes = words.next<double>();
    account.predicted_peak_bytes = words.next<double>();
  }
  return accounts;
}

std::string write_spans(const std::vector<WorkerSpans>& workers) {
  std::string text;
  for (const WorkerSpans& worker : workers) {
    add(text, worker.worker, worker.replica);
    add_spans(text, worker.measured);
    add_spans(text, worker.predicted);
  }
  return text;
}

std::vector<WorkerSpans> read_spans(const std::string& text) {
  std::vector<WorkerSpans> workers;
  for (Words words(text); !words.done();) {
    WorkerSpans& worker = workers.emplace_back();
    worker.worker = words.next<int>();
    worker.replica = words.next<int>();
    worker.measured = next_spans(words);
    worker.predicted = next_spans(words);
  }
  return workers;
}

}  // namespace convoy
