// `bench allreduce`: our all-reduce beside the MPI library's, or NCCL's between GPUs, in lines of
// JSON or a table.
#include <fmt/format.h>

#include "bench/allreduce.h"
#include "cli/commands.h"
#include "cli/job_group.h"
#include "cli/json_lines.h"
#include "cli/setup.h"
#include "comm/nccl_devices.h"
#include "kernels/base/device.h"
#include "kernels/base/error.h"

namespace convoy::cli {
namespace {

// Empty where there are none. A run measures one kind of memory.
std::vector<Device> gpus_of(const Settings& settings) {
  std::vector<Device> gpus;
  for (const std::string& name : settings.devices) {
    if (is_gpu(Device(name))) gpus.emplace_back(name);
  }
  CONVOY_CHECK(gpus.empty() || gpus.size() == settings.devices.size(),
               "--devices {}: bench allreduce takes GPUs or other devices, not both",
               fmt::join(settings.devices, ","));
  CONVOY_CHECK(gpus.empty() || settings.comm == "auto" || settings.comm == "nccl",
               "--comm {}: bench allreduce adds over NCCL between GPUs, expected auto or nccl",
               settings.comm);
  CONVOY_CHECK(!gpus.empty() || settings.comm != "nccl",
               "--comm nccl: {} is no GPU, expected --devices cuda:K or emu:K",
               settings.devices.front());
  return gpus;
}

AllReduceBenchOptions bench_options(const Options& options) {
  AllReduceBenchOptions bench;
  if (!options.bytes.empty()) bench.bytes = options.bytes;
  bench.repeats = options.repeats.value_or(bench.repeats);
  bench.gpus = gpus_of(options.settings);
  bench.check();
  return bench;
}

/// "25 MB", "4 kB"; what is no round number stays in bytes.
std::string size_text(std::int64_t bytes) {
  if (bytes % 1'000'000 == 0) return fmt::format("{} MB", bytes / 1'000'000);
  if (bytes % 1000 == 0) return fmt::format("{} kB", bytes / 1000);
  return fmt::format("{} B", bytes);
}

std::string time_text(double seconds) {
  return seconds < 1e-3 ? fmt::format("{:.1f} us", seconds * 1e6)
                        : fmt::format("{:.2f} ms", seconds * 1e3);
}

void print_json(const AllReduceBenchRow& row) {
  const JsonObject line{{"bench", "allreduce"},     {"impl", row.impl},
                        {"ranks", row.ranks},       {"bytes", row.bytes},
                        {"median_s", row.median_s}, {"best_s", row.best_s},
                        {"bus_gb_s", row.bus_gb_s}};
  print_line(line.text());
}

void print_table(const std::vector<AllReduceBenchRow>& rows) {
  print_line(fmt::format("{:<6}{:>6}{:>12}{:>14}{:>14}{:>12}", "impl", "ranks", "size", "median",
                         "best", "GB/s"));
  for (const AllReduceBenchRow& row : rows) {
    print_line(fmt::format("{:<6}{:>6}{:>12}{:>14}{:>14}{:>12.2f}", row.impl, row.ranks,
                           size_text(row.bytes), time_text(row.median_s), time_text(row.best_s),
                           row.bus_gb_s));
  }
}

}  // namespace

int run_bench_allreduce(Options& options) {
  const AllReduceBenchOptions bench = bench_options(options);
  const auto group = convoy::Group::make(discover_world(), group_options(options.settings));
  const auto rows = bench_all_reduce(*group, bench);
  if (group->first_rank() != 0) return 0;
  print_notes(options.notes);
  if (!options.json) print_table(rows);
  for (const AllReduceBenchRow& row : rows) {
    if (options.json) print_json(row);
  }
  return 0;
}

}  // namespace convoy::cli
