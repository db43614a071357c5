#include "engine/train/agreement.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "comm/host_values.h"
#include "kernels/base/error.h"

namespace convoy {
namespace {

// One line a bad value: "micro-batch value layer".
std::string text_of(const std::vector<std::pair<int, BadValue>>& bad_values) {
  std::string text;
  for (const auto& [micro_batch, bad] : bad_values) {
    text += fmt::format("{} {} {}\n", micro_batch, bad.value, bad.layer);
  }
  return text;
}

std::optional<BadValue> find_bad_value(const std::string& text, int micro_batch) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    const std::string line = text.substr(at, end - at);
    at = end + 1;
    const std::size_t first = line.find(' ');
    const std::size_t second = line.find(' ', first + 1);
    if (std::atoi(line.c_str()) != micro_batch) continue;
    return BadValue{line.substr(second + 1), std::strtod(line.c_str() + first, nullptr)};
  }
  return {};
}

}  // namespace

// Travels as it lies, with the squares of the worker's gradients behind it.
struct Agreement::Record {
  double loss;
  std::int64_t top1, top5, images;
  std::int64_t bad_micro_batch;
  double bad_loss;
};

struct Agreement::Gathered {
  std::vector<Record> records;               // of each rank
  std::vector<std::vector<double>> squares;  // of each rank
};

void Findings::note_loss(int micro_batch, double loss) {
  if (std::isfinite(loss) || bad_micro_batch >= 0) return;
  bad_micro_batch = micro_batch;
  bad_loss = loss;
}

void Findings::note_bad_value(int micro_batch,
                              const std::pair<std::string, double>& layer_and_value) {
  if (layer_and_value.first.empty()) return;
  bad_values.push_back({micro_batch, {layer_and_value.first, layer_and_value.second}});
}

Agreement::Agreement(HostCommunicator& group, const Layout& layout, const StageMap& map)
    : group_(group.split_host(0, group.rank())), layout_(layout), map_(map) {
  for (int position = 0; position < layout.workers_per_replica; ++position) {
    std::size_t parameters = 0;
    for (int stage : layout.stages_of(position)) {
      parameters += map.stages[static_cast<std::size_t>(stage)].parameters.size();
    }
    widest_ = std::max(widest_, parameters);
  }
}

Agreement::Gathered Agreement::gather(const Findings& mine, const std::vector<double>& squares) {
  const Record record{mine.sums.loss,   mine.sums.top1,       mine.sums.top5,
                      mine.sums.images, mine.bad_micro_batch, mine.bad_loss};
  const std::size_t bytes = sizeof record + squares.size() * sizeof(double);
  std::vector<std::byte> sent(bytes);
  std::memcpy(sent.data(), &record, sizeof record);
  std::copy_n(reinterpret_cast<const std::byte*>(squares.data()), bytes - sizeof record,
              sent.data() + sizeof record);
  std::vector<std::byte> received(bytes * static_cast<std::size_t>(group_->size()));
  group_->all_gather_now(sent.data(), received.data(), bytes);
  Gathered all;
  for (std::size_t at = 0; at < received.size(); at += bytes) {
    std::memcpy(&all.records.emplace_back(), received.data() + at, sizeof record);
    std::vector<double>& of_rank = all.squares.emplace_back(squares.size());
    std::copy_n(received.data() + at + sizeof record, bytes - sizeof record,
                reinterpret_cast<std::byte*>(of_rank.data()));
  }
  return all;
}

// Batch norm over several replicas carries a bad value to all of them: then the one that made it
// is told, whichever replica's loss comes first.
void Agreement::check_losses(const std::string& when, const std::vector<Record>& all,
                             const Findings& mine) {
  std::optional<Record> first;
  for (const Record& record : all) {
    if (!first && record.bad_micro_batch >= 0) first = record;
  }
  if (!first) return;
  const std::vector<std::string> texts = gather_texts(*group_, text_of(mine.bad_values));
  for (int rank = 0; rank < group_->size(); ++rank) {
    const int replica = layout_.replica_of(rank);
    const Record& loss =
        all[static_cast<std::size_t>(layout_.rank_of(replica, layout_.workers_per_replica - 1))];
    if (loss.bad_micro_batch < 0) continue;
    const auto bad = find_bad_value(texts[static_cast<std::size_t>(rank)],
                                    static_cast<int>(loss.bad_micro_batch));
    if (!bad) continue;
    throw Error(ErrorKind::numerics, bad_loss_text(when, loss.bad_loss, *bad), CONVOY_PLACE, rank);
  }
  CONVOY_FAIL(numerics, "{}", bad_loss_text(when, first->bad_loss, {}));
}

StepResult Agreement::step(std::int64_t step, const Findings& mine,
                           const std::vector<StageGradients>& gradients) {
  std::vector<double> squares;
  for (const StageGradients& stage : gradients) {
    squares.insert(squares.end(), stage.squares.begin(), stage.squares.end());
  }
  squares.resize(widest_);
  const Gathered all = gather(mine, squares);
  check_losses(fmt::format("step {}", step), all.records, mine);
  StepResult result;
  for (const Record& record : all.records) result.loss += record.loss;
  result.grad_norm = norm_of(step, gradients, all);
  return result;
}

// The squares of one stage's gradients. All replicas have the same gradients: those of replica 0
// are taken, so all workers add the same numbers.
std::span<const double> Agreement::squares_of(int stage, const Gathered& all) const {
  const int rank = layout_.rank_of(0, stage % layout_.workers_per_replica);
  std::span<const double> squares = all.squares[static_cast<std::size_t>(rank)];
  for (int own : layout_.stages_of(rank)) {
    const std::size_t count = map_.stages[static_cast<std::size_t>(own)].parameters.size();
    if (own == stage) return squares.first(count);
    squares = squares.subspan(count);
  }
  return {};
}

// Added in the order of the network's parameters, as one device does it. Backward comes from the
// end, so the last bad parameter is the first one that went wrong.
double Agreement::norm_of(std::int64_t step, const std::vector<StageGradients>& mine,
                          const Gathered& all) {
  double sum = 0;
  std::optional<std::pair<int, std::size_t>> bad;
  for (int stage = 0; stage < map_.count(); ++stage) {
    const std::span<const double> squares = squares_of(stage, all);
    for (std::size_t i = 0; i < squares.size(); ++i) {
      sum += squares[i];
      if (!std::isfinite(squares[i])) bad = {stage, i};
    }
  }
  if (bad) fail_gradient(step, mine, bad->first, bad->second);
  if (!std::isfinite(sum)) {
    CONVOY_FAIL(numerics, "step {}: the gradient norm is {}", step, std::sqrt(sum));
  }
  return std::sqrt(sum);
}

void Agreement::fail_gradient(std::int64_t step, const std::vector<StageGradients>& mine, int stage,
                              std::size_t parameter) {
  const int owner = layout_.rank_of(0, stage % layout_.workers_per_replica);
  std::string text;
  for (const StageGradients& own : mine) {
    if (group_->rank() != owner || own.stage != stage) continue;
    const auto& [name, tensor] = own.parameters[parameter];
    text = bad_gradient_text(step, name, tensor.grad(), own.squares[parameter]);
  }
  text = broadcast_text(*group_, text, owner);
  throw Error(ErrorKind::numerics, text, CONVOY_PLACE, owner);
}

EvalSums Agreement::evaluation(const Findings& mine) {
  const Gathered all = gather(mine, {});
  check_losses("evaluation", all.records, mine);
  EvalSums sums;
  for (const Record& record : all.records) {
    sums += {record.loss, record.top1, record.top5, record.images};
  }
  return sums;
}

}  // namespace convoy
