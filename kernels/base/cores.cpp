#include "kernels/base/cores.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <tuple>

namespace convoy {
namespace {

// A number of /sys/devices/system/cpu/cpuN/topology; 0 where the system does not tell.
int topology(int core, const char* what) {
  std::ifstream file(fmt::format("/sys/devices/system/cpu/cpu{}/topology/{}", core, what));
  int number = 0;
  return file >> number ? number : 0;
}

}  // namespace

Cores cores_in_order(const cpu_set_t& mask) {
  std::vector<std::tuple<int, int, int>> places;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &mask)) continue;
    places.emplace_back(topology(core, "physical_package_id"), topology(core, "core_id"), core);
  }
  std::sort(places.begin(), places.end());
  Cores cores;
  for (const auto& place : places) cores.push_back(std::get<2>(place));
  return cores;
}

Cores allowed_core_list() {
  cpu_set_t mask;
  if (sched_getaffinity(getpid(), sizeof mask, &mask) != 0) return {};
  return cores_in_order(mask);
}

int allowed_cores() {
  cpu_set_t mask;
  if (sched_getaffinity(getpid(), sizeof mask, &mask) != 0) return 1;
  return std::max(1, CPU_COUNT(&mask));
}

Cores part_of(const Cores& cores, int part, int parts) {
  const auto size = static_cast<std::ptrdiff_t>(cores.size()) / parts;
  return {cores.begin() + part * size, cores.begin() + (part + 1) * size};
}

std::string core_list(Cores cores) {
  std::sort(cores.begin(), cores.end());
  std::string text;
  for (std::size_t i = 0; i < cores.size(); ++i) {
    const std::size_t first = i;
    while (i + 1 < cores.size() && cores[i + 1] == cores[i] + 1) ++i;
    text += fmt::format("{}{}", text.empty() ? "" : ",", cores[first]);
    if (i > first) text += fmt::format("-{}", cores[i]);
  }
  return text;
}

bool openmp_binds_threads() {
  return std::getenv("OMP_PROC_BIND") || std::getenv("OMP_PLACES") ||
         std::getenv("GOMP_CPU_AFFINITY");
}

bool bind_thread(const Cores& cores) {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  for (int core : cores) CPU_SET(core, &mask);
  return sched_setaffinity(0, sizeof mask, &mask) == 0;
}

CoresScope::CoresScope(const Cores& cores) {
  if (cores.empty() || sched_getaffinity(0, sizeof before_, &before_) != 0) return;
  bound_ = bind_thread(cores);
}

CoresScope::~CoresScope() {
  if (bound_) sched_setaffinity(0, sizeof before_, &before_);
}

}  // namespace convoy
