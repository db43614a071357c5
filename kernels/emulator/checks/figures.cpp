#include "kernels/emulator/checks/figures.h"

#include <algorithm>
#include <array>
#include <bit>
#include <set>

namespace convoy::emulator::checks {

namespace {

constexpr std::uint32_t kBanks = 32, kBankBytes = 4, kSectorBytes = 32;

// Trips for lanes [first, last): the most different words that one bank must give.
std::uint32_t trips(const Request& request, int first, int last) {
  std::set<std::uintptr_t> words;
  for (int lane = first; lane < last; ++lane) {
    if (!(request.lanes >> lane & 1)) continue;
    const std::uintptr_t begin = request.address[lane];
    for (std::uintptr_t word = begin / kBankBytes; word <= (begin + request.bytes - 1) / kBankBytes;
         ++word) {
      words.insert(word);
    }
  }
  std::array<std::uint32_t, kBanks> load = {};
  for (std::uintptr_t word : words) ++load[word % kBanks];
  return std::ranges::max(load);
}

}  // namespace

Cost wavefronts(const Request& request) {
  const int parts = request.bytes <= 4 ? 1 : request.bytes <= 8 ? 2 : 4;
  Cost cost;
  for (int first = 0; first < kLanes; first += kLanes / parts) {
    const std::uint32_t taken = trips(request, first, first + kLanes / parts);
    cost.actual += taken;
    cost.ideal += taken > 0 ? 1 : 0;
  }
  return cost;
}

Cost sectors(const Request& request) {
  std::set<std::uintptr_t> touched, starts;
  for (int lane = 0; lane < kLanes; ++lane) {
    if (!(request.lanes >> lane & 1)) continue;
    const std::uintptr_t begin = request.address[lane];
    starts.insert(begin);
    for (std::uintptr_t sector = begin / kSectorBytes;
         sector <= (begin + request.bytes - 1) / kSectorBytes; ++sector) {
      touched.insert(sector);
    }
  }
  const std::size_t bytes = starts.size() * request.bytes;
  return {std::uint32_t(touched.size()), std::uint32_t((bytes + kSectorBytes - 1) / kSectorBytes)};
}

void add(SiteFigures& to, const SiteFigures& from) {
  to.is_shared = from.is_shared;
  to.is_write = from.is_write;
  to.requests += from.requests;
  to.bytes += from.bytes;
  to.actual += from.actual;
  to.ideal += from.ideal;
}

void BlockFigures::evaluate(Instruction& instruction, const Request& request) {
  const Cost cost = instruction.is_shared ? wavefronts(request) : sectors(request);
  SiteFigures& sums = instruction.sums;
  ++sums.requests;
  sums.bytes += std::uint64_t{request.bytes} * std::popcount(request.lanes);
  sums.actual += cost.actual;
  sums.ideal += cost.ideal;
}

void BlockFigures::add(int thread, std::uint32_t code, const void* address, std::uint32_t bytes,
                       bool is_shared, bool is_write) {
  auto [place, is_new] = instructions_.try_emplace(instruction_key(code, is_shared));
  Instruction& instruction = place->second;
  if (is_new) {
    instruction.is_shared = is_shared;
    instruction.is_write = is_write;
  }
  const std::uint32_t time = instruction.times[thread]++;
  auto& pending = instruction.pending[thread / kLanes];
  Request& request = pending[time];
  const int lane = thread % kLanes;
  request.lanes |= 1u << lane;
  request.bytes = bytes;
  request.address[lane] = reinterpret_cast<std::uintptr_t>(address);
  if (request.lanes == ~0u) {
    evaluate(instruction, request);
    pending.erase(time);
  }
}

void BlockFigures::finish(std::map<std::uint64_t, SiteFigures>& sites) {
  for (auto& [key, instruction] : instructions_) {
    for (auto& [warp, pending] : instruction.pending) {
      for (auto& [time, request] : pending) evaluate(instruction, request);
    }
    instruction.sums.is_shared = instruction.is_shared;
    instruction.sums.is_write = instruction.is_write;
    checks::add(sites[key], instruction.sums);
  }
  instructions_.clear();
}

}  // namespace convoy::emulator::checks
