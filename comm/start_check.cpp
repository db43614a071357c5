#include "comm/start_check.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>

#include "comm/host_values.h"
#include "kernels/base/error.h"

namespace convoy {
namespace {

constexpr std::size_t kMostDifferences = 20;  // told; the rest is counted

void append(std::string& packed, const std::string& text) {
  const std::uint64_t size = text.size();
  packed.append(reinterpret_cast<const char*>(&size), sizeof size);
  packed += text;
}

/// Each text with its length before it: texts may hold any byte.
std::string pack(const Facts& facts) {
  std::string packed;
  for (const auto& [name, value] : facts) {
    append(packed, name);
    append(packed, value);
  }
  return packed;
}

std::string take(std::string_view& packed) {
  std::uint64_t size = 0;
  std::memcpy(&size, packed.data(), sizeof size);
  std::string text(packed.substr(sizeof size, size));
  packed.remove_prefix(sizeof size + size);
  return text;
}

Facts unpack(std::string_view packed) {
  Facts facts;
  while (!packed.empty()) {
    std::string name = take(packed);
    std::string value = take(packed);
    facts.emplace_back(std::move(name), std::move(value));
  }
  return facts;
}

std::optional<std::string> find(const Facts& facts, const std::string& name) {
  const auto found = std::find_if(facts.begin(), facts.end(),
                                  [&](const auto& fact) { return fact.first == name; });
  if (found == facts.end()) return std::nullopt;
  return found->second;
}

std::string shown(const std::optional<std::string>& value) {
  return value ? "'" + *value + "'" : "not set";
}

/// Names of `first`, then those that `other` has besides.
std::vector<std::string> names_of(const Facts& first, const Facts& other) {
  std::vector<std::string> names;
  for (const auto& fact : first) names.push_back(fact.first);
  for (const auto& fact : other) {
    if (!find(first, fact.first)) names.push_back(fact.first);
  }
  return names;
}

}  // namespace

std::string differences(const std::vector<Facts>& of_processes) {
  std::string text;
  std::size_t count = 0;
  const Facts& first = of_processes.front();
  for (std::size_t rank = 1; rank < of_processes.size(); ++rank) {
    for (const std::string& name : names_of(first, of_processes[rank])) {
      const auto mine = find(first, name);
      const auto other = find(of_processes[rank], name);
      if (mine == other || ++count > kMostDifferences) continue;
      text += fmt::format("{}{} is {} on rank 0, {} on rank {}", text.empty() ? "" : "; ", name,
                          shown(mine), shown(other), rank);
    }
  }
  if (count > kMostDifferences) text += fmt::format("; and {} more", count - kMostDifferences);
  return text;
}

void check_equal_facts(HostCommunicator& processes, const Facts& facts) {
  if (processes.size() == 1) return;
  std::vector<Facts> all;
  for (const std::string& packed : gather_texts(processes, pack(facts))) {
    all.push_back(unpack(packed));
  }
  const std::string text = differences(all);
  CONVOY_CHECK(text.empty(), "ranks differ: {}", text);
}

}  // namespace convoy
