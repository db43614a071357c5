// `bench kernels`: each kernel of a step of ResNet-50 alone, in lines of JSON or a table.
#include "bench/kernels.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "cli/commands.h"
#include "cli/json_lines.h"
#include "cli/progress_format.h"
#include "cli/read_options.h"
#include "cli/setup.h"
#include "kernels/base/error.h"
#include "kernels/base/host_context.h"

namespace convoy::cli {
namespace {

// The program with the checks, which count on emulated devices, lies beside this one.
constexpr const char* kCheckedProgram = "convoy-checked";

DType dtype_of(const std::string& precision, DeviceType device) {
  const bool gpu = device == DeviceType::cuda || device == DeviceType::emu;
  CONVOY_CHECK(gpu || precision == "fp32" || precision == "fp64",
               "--precision {}: kernels of the CPU have fp32, those of ref:K fp64 too", precision);
  if (precision == "bf16") return DType::bf16;
  if (precision == "fp64") return DType::f64;
  return DType::f32;
}

// On emulated devices a cut-down network: figures per request do not depend on its size.
KernelCaseOptions cases_of(const Options& options, DeviceType device) {
  const Settings& settings = options.settings;
  const bool emulated = device == DeviceType::emu;
  KernelCaseOptions cases;
  if (device != DeviceType::cuda) cases.images = emulated ? 1 : 16;
  if (was_given(options, "batch")) cases.images = settings.batch;
  cases.image_size = settings.image_size.value_or(emulated ? 32 : 224);
  cases.channel_divisor = emulated ? 16 : 1;
  cases.dtype = dtype_of(settings.precision, device);
  return cases;
}

KernelBenchOptions bench_options(const Options& options) {
  const Settings& settings = options.settings;
  CONVOY_CHECK(settings.devices.size() == 1, "--devices {}: bench kernels measures one device",
               fmt::join(settings.devices, ","));
  KernelBenchOptions bench;
  bench.device = Device(settings.devices.front());
  bench.cases = cases_of(options, bench.device.type);
  bench.tf32 = settings.precision == "tf32";
  bench.repeats = options.repeats.value_or(bench.repeats);
  return bench;
}

std::string microseconds(double seconds) {
  return fmt::format("{:.1f}", seconds * 1e6);
}

void print_row(const Options& options, const KernelBenchRow& row) {
  if (options.json) {
    JsonObject line{{"bench", "kernels"},
                    {"name", row.name},
                    {"shape", row.shape},
                    {"count", row.count},
                    {"seconds", row.seconds},
                    {"best", row.best},
                    {"flops", row.flops},
                    {"bytes", row.bytes},
                    {"limit_s", row.limit_seconds},
                    {"share_of_limit", row.share_of_limit},
                    {"vendor_s", row.vendor_seconds}};
    return print_line(line.text());
  }
  const std::string vendor = row.vendor_seconds ? microseconds(*row.vendor_seconds) : "-";
  print_line(fmt::format("{:<26}{:<36}{:>3}{:>12}{:>12}{:>10}{:>12}", row.name, row.shape,
                         row.count, microseconds(row.seconds), microseconds(row.limit_seconds),
                         percent(row.share_of_limit), vendor));
}

void print_head(const Options& options) {
  if (options.json) return;
  print_line(fmt::format("{:<26}{:<36}{:>3}{:>12}{:>12}{:>10}{:>12}", "kernel", "shape", "n", "us",
                         "limit us", "share", "vendor us"));
}

/// The time of a step's kernels, ours, at the limit, and the vendor's where all are there.
void print_sums(const Options& options, const KernelBenchResult& result) {
  double seconds = 0, limit = 0, vendor = 0;
  for (const KernelBenchRow& row : result.rows) {
    const auto count = static_cast<double>(row.count);
    seconds += count * row.seconds;
    limit += count * row.limit_seconds;
    vendor += count * row.vendor_seconds.value_or(0);
  }
  const std::optional<double> theirs = result.vendor.empty() ? std::optional(vendor) : std::nullopt;
  if (options.json) {
    const JsonObject line{{"bench", "kernels"},
                          {"name", "step"},
                          {"precision", options.settings.precision},
                          {"seconds", seconds},
                          {"limit_s", limit},
                          {"share_of_limit", limit / seconds},
                          {"vendor_s", theirs},
                          {"no_vendor", result.vendor},
                          {"peak_flops", result.ceilings.flops},
                          {"peak_flops_of", result.ceilings.source},
                          {"copy_bytes_s", result.ceilings.bytes_s}};
    return print_line(line.text());
  }
  print_line(fmt::format("all kernels of a step: {:.3f} ms, limit {:.3f} ms ({})", seconds * 1e3,
                         limit * 1e3, percent(limit / seconds)));
  print_line(fmt::format("ceilings: {:.1f} TFLOP/s ({}), copy {:.1f} GB/s",
                         result.ceilings.flops / 1e12, result.ceilings.source,
                         result.ceilings.bytes_s / 1e9));
  if (!result.vendor.empty()) print_line("no vendor times: " + result.vendor);
}

struct Totals {
  std::uint64_t requests = 0, actual = 0, ideal = 0;
};

Totals totals_of(const emulator::KernelFigures& figures, bool is_shared) {
  Totals totals;
  for (const emulator::SiteFigures& site : figures.sites) {
    if (site.is_shared != is_shared) continue;
    totals.requests += site.requests;
    totals.actual += site.actual;
    totals.ideal += site.ideal;
  }
  return totals;
}

double ratio(std::uint64_t a, std::uint64_t b) {
  return b > 0 ? static_cast<double>(a) / static_cast<double>(b) : 0;
}

void print_figures(const Options& options, const std::string& precision,
                   const emulator::KernelFigures& figures) {
  const Totals global = totals_of(figures, false), shared = totals_of(figures, true);
  const std::uint64_t moved = figures.bytes_read + figures.bytes_written;
  const std::uint64_t compulsory = figures.compulsory_read + figures.compulsory_written;
  const std::uint64_t conflicts = shared.actual - shared.ideal;
  if (options.json) {
    const JsonObject line{{"bench", "kernels"},
                          {"name", figures.kernel},
                          {"precision", precision},
                          {"launches", figures.launches},
                          {"bytes_read", figures.bytes_read},
                          {"bytes_written", figures.bytes_written},
                          {"compulsory_read", figures.compulsory_read},
                          {"compulsory_written", figures.compulsory_written},
                          {"sectors_per_request", ratio(global.actual, global.requests)},
                          {"ideal_sectors_per_request", ratio(global.ideal, global.requests)},
                          {"wavefronts", shared.actual},
                          {"bank_conflicts", conflicts}};
    return print_line(line.text());
  }
  print_line(fmt::format(
      "{:<6}{:>9}{:>12}{:>7.2f}{:>9.2f}{:>9.2f}{:>12}{:>11}  {}", precision, figures.launches,
      moved, ratio(moved, compulsory), ratio(global.actual, global.requests),
      ratio(global.ideal, global.requests), shared.actual, conflicts, figures.kernel));
}

// The words that this program was started with.
std::vector<std::string> own_words() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> words;
  for (std::string word; std::getline(file, word, '\0');) words.push_back(word);
  return words;
}

// Becomes the program with the checks, with the same words.
[[noreturn]] void start_checked_program() {
  const auto self = std::filesystem::read_symlink("/proc/self/exe");
  const std::string program = (self.parent_path() / kCheckedProgram).string();
  CONVOY_DCHECK(self != program, "{} was built without the checks", program);
  std::vector<std::string> words = own_words();
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  ::execv(program.c_str(), pointers.data());
  CONVOY_FAIL(usage,
              "bench kernels: figures of emulated devices are counted by {}, which is not here "
              "(built with gcc and without sanitizers)",
              program);
}

int bench_figures(const Options& options) {
  if (!emulator::has_kernel_figures()) start_checked_program();
  print_notes(options.notes);
  if (!options.json) {
    print_line(fmt::format("{:<6}{:>9}{:>12}{:>7}{:>9}{:>9}{:>12}{:>11}  kernel", "", "launches",
                           "bytes", "/least", "sectors", "ideal", "wavefronts", "conflicts"));
  }
  std::vector<std::string> precisions = {"fp32", "tf32", "bf16"};
  if (was_given(options, "precision")) precisions = {options.settings.precision};
  for (const std::string& precision : precisions) {
    Options one = options;
    one.settings.precision = precision;
    for (const auto& figures : bench_kernel_figures(bench_options(one))) {
      print_figures(options, precision, figures);
    }
  }
  return 0;
}

}  // namespace

int run_bench_kernels(Options& options) {
  const KernelBenchOptions bench = bench_options(options);
  if (bench.device.type == DeviceType::emu) return bench_figures(options);
  if (options.settings.threads) context(bench.device).set_threads(*options.settings.threads);
  print_notes(options.notes);
  print_head(options);
  const KernelBenchResult result =
      bench_kernels(bench, [&](const KernelBenchRow& row) { print_row(options, row); });
  print_sums(options, result);
  return 0;
}

}  // namespace convoy::cli
