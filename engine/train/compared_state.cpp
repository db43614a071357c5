#include "engine/train/compared_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "engine/io/hash.h"
#include "kernels/base/error.h"

namespace convoy {
namespace {

constexpr std::size_t kFields = 7;

std::vector<std::string> fields_of(const StateEntry& entry) {
  return {std::to_string(static_cast<int>(entry.part)),
          std::to_string(entry.replica),
          std::to_string(entry.layer),
          entry.name,
          entry.digest,
          std::to_string(entry.process),
          std::to_string(entry.bytes)};
}

StateEntry entry_of(const std::string* fields) {
  StateEntry entry;
  entry.part = static_cast<StatePart>(std::stoi(fields[0]));
  entry.replica = std::stoi(fields[1]);
  entry.layer = std::stoi(fields[2]);
  entry.name = fields[3];
  entry.digest = fields[4];
  entry.process = std::stoi(fields[5]);
  entry.bytes = std::stoll(fields[6]);
  return entry;
}

bool same_place(const StateEntry& a, const StateEntry& b) {
  return a.part == b.part && a.replica == b.replica && a.name == b.name;
}

}  // namespace

const char* name(StatePart part) {
  constexpr const char* kNames[] = {"output", "gradient", "statistic", "weight"};
  return kNames[static_cast<int>(part)];
}

HeldEntry held_entry(StatePart part, int replica, int layer, const std::string& name,
                     const Tensor& values) {
  const std::vector<std::byte> bytes = values.to_bytes();
  HeldEntry held;
  held.entry = {part, replica, layer, name, hash128_hex(bytes), 0, std::ssize(bytes)};
  held.values = values;
  return held;
}

std::vector<HeldEntry> output_entries(const LayerWatch::Outputs& outputs, const Network& network,
                                      const std::function<int(const Device&)>& replica_of) {
  std::vector<HeldEntry> entries;
  for (const auto& [place, hashes] : outputs) {
    HeldEntry held;
    held.entry.part = StatePart::output;
    held.entry.replica = replica_of(place.device);
    held.entry.layer = place.layer;
    held.entry.name = network.layers().at(static_cast<std::size_t>(place.layer)).name;
    for (const std::uint64_t hash : hashes) held.entry.digest += fmt::format("{:016x}", hash);
    entries.push_back(std::move(held));
  }
  return entries;
}

std::vector<HeldEntry> TrainedState::read(const Network& network) {
  std::vector<HeldEntry> entries = output_entries(watch_->take(), network, replica_of_);
  for (const auto& layer : watch_->layers()) add(*layer, entries);
  return entries;
}

void TrainedState::add(WatchedLayer& layer, std::vector<HeldEntry>& entries) {
  const NamedTensors parameters = layer.named_parameters();
  const bool has_gradient =
      std::any_of(parameters.begin(), parameters.end(),
                  [](const auto& entry) { return entry.second.grad().defined(); });
  if (has_gradient) trained_.insert(&layer);
  if (!trained_.contains(&layer)) return;
  const int replica = replica_of_(parameters.front().second.device());
  auto keep = [&](StatePart part, const std::string& name, const Tensor& values) {
    entries.push_back(
        held_entry(part, replica, layer.number(), layer.name() + "." + name, values.detach()));
  };
  for (const auto& [name, parameter] : parameters) {
    if (parameter.grad().defined()) keep(StatePart::gradient, name, parameter.grad());
  }
  for (const auto& [name, value] : statistics_of(layer)) keep(StatePart::statistic, name, value);
  for (const auto& [name, parameter] : parameters) keep(StatePart::weight, name, parameter);
}

std::vector<StateEntry> all_entries(const Ranks& ranks, const std::vector<HeldEntry>& mine) {
  std::vector<std::string> texts;
  for (const HeldEntry& held : mine) {
    StateEntry entry = held.entry;
    entry.process = ranks.group() ? ranks.group()->world().rank : 0;
    std::ranges::move(fields_of(entry), std::back_inserter(texts));
  }
  texts = ranks.all_texts(texts);
  std::vector<StateEntry> all;
  for (std::size_t i = 0; i + kFields <= texts.size(); i += kFields) {
    all.push_back(entry_of(&texts[i]));
  }
  return all;
}

std::vector<std::byte> values_of(const Ranks& ranks, const StateEntry& entry,
                                 const std::vector<HeldEntry>& mine) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(entry.bytes));
  const int process = ranks.group() ? ranks.group()->world().rank : 0;
  if (process == entry.process) {
    const auto found = std::find_if(mine.begin(), mine.end(), [&](const HeldEntry& held) {
      return same_place(held.entry, entry);
    });
    CONVOY_DCHECK(found != mine.end(), "{} is not here", entry.name);
    bytes = found->values.to_bytes();
  }
  if (ranks.processes() > 1 && !bytes.empty()) {
    ranks.group()->processes().broadcast_now(bytes.data(), bytes.size(), entry.process);
  }
  return bytes;
}

}  // namespace convoy
