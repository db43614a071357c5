#include "engine/train/difference.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>

#include "kernels/base/error.h"

namespace convoy {
namespace {

constexpr std::size_t kHashDigits = 16;  // of one output
constexpr double kNoNumber = std::numeric_limits<double>::infinity();

// Phases of a step in the order in which a difference arises.
enum Phase { forward, loss, backward, norm, statistics, update };
constexpr const char* kPhases[] = {"forward", "loss", "backward", "norm", "statistics", "update"};

Phase phase_of(StatePart part) {
  switch (part) {
    case StatePart::output:
      return forward;
    case StatePart::gradient:
      return backward;
    case StatePart::statistic:
      return statistics;
    case StatePart::weight:
      return update;
  }
  return update;
}

bool same_bits(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

double difference(double a, double b) {
  if (same_bits(a, b)) return 0;
  return std::isfinite(a) && std::isfinite(b) ? std::abs(a - b) : kNoNumber;
}

template <class T>
double largest_of(const std::vector<std::byte>& a, const std::vector<std::byte>& b) {
  double largest = 0;
  for (std::size_t i = 0; i + sizeof(T) <= a.size(); i += sizeof(T)) {
    T x, y;
    std::memcpy(&x, a.data() + i, sizeof(T));
    std::memcpy(&y, b.data() + i, sizeof(T));
    largest = std::max(largest, difference(static_cast<double>(x), static_cast<double>(y)));
  }
  return largest;
}

double largest_difference(DType dtype, const std::vector<std::byte>& a,
                          const std::vector<std::byte>& b) {
  if (a.size() != b.size()) return kNoNumber;
  if (dtype == DType::f32) return largest_of<float>(a, b);
  if (dtype == DType::f64) return largest_of<double>(a, b);
  CONVOY_DCHECK(dtype == DType::i64, "verify compares f32, f64 and i64");
  return largest_of<std::int64_t>(a, b);
}

// The first micro-batch whose hash differs, or that one side has alone.
std::int64_t first_micro_batch(const std::string& a, const std::string& b) {
  std::size_t place = 0;
  while (place < std::min(a.size(), b.size()) &&
         a.compare(place, kHashDigits, b, place, kHashDigits) == 0) {
    place += kHashDigits;
  }
  return static_cast<std::int64_t>(place / kHashDigits);
}

}  // namespace

void Differences::numbers(const StepResult& layout, const StepResult& one) {
  result_.loss = layout.loss;
  result_.grad_norm = layout.grad_norm;
  auto compare = [&](double a, double b, LargestDifference& largest, Phase phase,
                     const char* what) {
    if (same_bits(a, b)) return;
    if (largest.name.empty() || difference(a, b) > largest.value) {
      largest = {difference(a, b), what};
    }
    note_first(phase, 0, {step_, kPhases[phase], what, "", 0, {}});
  };
  compare(layout.loss, one.loss, result_.loss_difference, loss, "loss");
  compare(layout.grad_norm, one.grad_norm, result_.norm_difference, norm, "gradient norm");
}

std::vector<std::size_t> Differences::hashes(const std::vector<StateEntry>& layout,
                                             const std::vector<HeldEntry>& one,
                                             const Network& network) {
  expected_.clear();
  for (const HeldEntry& held : one) {
    expected_[{held.entry.part, held.entry.replica, held.entry.name}] = &held;
  }
  std::map<Key, bool> seen;
  std::vector<std::size_t> wanted;
  for (std::size_t i = 0; i < layout.size(); ++i) {
    const StateEntry& entry = layout[i];
    const Key key = {entry.part, entry.replica, entry.name};
    seen[key] = true;
    ++result_.compared;
    const auto found = expected_.find(key);
    const std::string right = found == expected_.end() ? "" : found->second->entry.digest;
    if (right == entry.digest) continue;
    if (entry.part == StatePart::output) {
      differs(entry, network, first_micro_batch(entry.digest, right));
      continue;
    }
    differs(entry, network);
    wanted.push_back(i);
  }
  for (const auto& [key, held] : expected_) {
    if (seen.contains(key)) continue;
    differs(held->entry, network);  // no worker has it
    grow(held->entry.part, held->entry.name, kNoNumber);
  }
  return wanted;
}

void Differences::values(const StateEntry& entry, const std::vector<std::byte>& layout) {
  const auto found = expected_.find({entry.part, entry.replica, entry.name});
  const bool is_there = found != expected_.end() && found->second->values.defined();
  const double value = !is_there ? kNoNumber
                                 : largest_difference(found->second->values.dtype(), layout,
                                                      found->second->values.to_bytes());
  grow(entry.part, entry.name, value);
}

void Differences::grow(StatePart part, const std::string& name, double value) {
  if (part == StatePart::output) return;
  LargestDifference& largest = part == StatePart::gradient    ? result_.gradient
                               : part == StatePart::statistic ? result_.statistic
                                                              : result_.weight;
  if (largest.name.empty() || value > largest.value) largest = {value, name};
}

void Differences::differs(const StateEntry& entry, const Network& network,
                          std::optional<std::int64_t> micro_batch) {
  const Phase phase = phase_of(entry.part);
  // Backward comes from the end of the network.
  const std::int64_t place = phase == backward ? -entry.layer : entry.layer;
  const std::string& layer = network.layers().at(static_cast<std::size_t>(entry.layer)).name;
  const std::string tensor = entry.part == StatePart::output ? "" : entry.name;
  note_first(phase, place, {step_, kPhases[phase], layer, tensor, entry.replica, micro_batch});
}

void Differences::note_first(int phase, std::int64_t place, FirstDifference found) {
  const std::pair here(phase, place);
  if (first_ && first_place_ <= here) return;
  first_ = std::move(found);
  first_place_ = here;
}

void Differences::end_step() {
  ++result_.steps;
  if (!first_) return;
  result_.equal = false;
  if (!result_.first) result_.first = first_;
  first_.reset();
}

}  // namespace convoy
