// From settings to what runs: device, element type, optimizer, runner; and checks before step 1.
#include "engine/train/setup.h"

#include <charconv>
#include <cstdlib>
#include <string_view>

#include "engine/optim/optimizer.h"
#include "kernels/backends.h"
#include "kernels/base/context.h"
#include "kernels/base/cores.h"
#include "kernels/base/error.h"

namespace convoy {
namespace {

// More threads gain nothing; thousands of them get the process killed.
constexpr int kMostThreadsPerCore = 8;

int checked_threads(int threads, const char* origin) {
  const int cores = allowed_cores();
  CONVOY_CHECK(threads >= 1 && threads <= kMostThreadsPerCore * cores,
               "{} {}: this process may use {} core(s), expected 1 to {}", origin, threads, cores,
               kMostThreadsPerCore * cores);
  return threads;
}

// OMP_NUM_THREADS; of nested levels ("4,2") the first.
std::optional<int> threads_of_environment() {
  const char* text = std::getenv("OMP_NUM_THREADS");
  if (!text || !*text) return {};
  const std::string_view all(text);
  const std::string_view first = all.substr(0, all.find(','));
  int threads = 0;
  const auto [end, code] = std::from_chars(first.data(), first.data() + first.size(), threads);
  CONVOY_CHECK(code == std::errc() && end == first.data() + first.size(),
               "OMP_NUM_THREADS is \"{}\", expected a number of threads", all);
  return checked_threads(threads, "OMP_NUM_THREADS");
}

DataOptions data_options(const Settings& settings) {
  DataOptions options;
  options.limit = settings.limit;
  options.max_pixels = settings.max_pixels;
  options.classes = settings.classes.value_or(0);
  options.seed = settings.seed;
  options.image_size = static_cast<int>(image_size_of(settings));
  return options;
}

// A type that kernels lack is refused here, in one place.
void check_precision(const std::string& precision, const Device& device) {
  if (is_gpu(device)) return;
  const char* hosts = precision == "fp64" ? "ref:K, " : precision == "bf16" ? "cpu:K, " : "";
  CONVOY_CHECK((precision == "fp64" && device.type == DeviceType::ref) ||
                   (precision == "bf16" && device.type == DeviceType::cpu),
               "--precision {} needs --devices {}cuda:K or emu:K, but the device is {}", precision,
               hosts, to_string(device));
  const std::string problem = precision == "bf16" ? cpu::why_no_bf16() : "";
  CONVOY_CHECK(problem.empty(), "--precision bf16 on {}: {}", to_string(device), problem);
}

}  // namespace

std::optional<int> threads_of(const Settings& settings) {
  return settings.threads ? checked_threads(*settings.threads, "--threads")
                          : threads_of_environment();
}

DeviceContext& prepare_device(const Settings& settings, std::size_t which) {
  const std::optional<int> threads = threads_of(settings);
  DeviceContext& device = context(Device(settings.devices.at(which)));
  if (threads) device.set_threads(*threads);
  if (settings.precision == "tf32") device.set_tf32(true);
  if (settings.kernels == "vendor") {
    choose_kernels(device.device(), settings.deterministic ? KernelChoice::vendor_deterministic
                                                           : KernelChoice::vendor);
  }
  if (settings.device_memory) {
    device.memory().set_cap(static_cast<std::size_t>(*settings.device_memory));
  }
  return device;
}

bool has_spare_cores(const Settings& settings) {
  if (Device(settings.devices.front()).type == DeviceType::cuda) return true;
  int busy = 0;
  for (const std::string& name : settings.devices) busy += context(Device(name)).threads();
  return allowed_cores() >= busy + static_cast<int>(settings.devices.size());
}

DType dtype_of_precision(const Settings& settings) {
  if (settings.precision == "fp32") return DType::f32;
  for (const std::string& name : settings.devices) check_precision(settings.precision, name);
  if (settings.precision == "fp64") return DType::f64;
  return settings.precision == "bf16" ? DType::bf16 : DType::f32;
}

BatchNormMode batch_norm_mode(const Settings& settings) {
  if (settings.bn == "micro" || settings.bn == "sync") return BatchNormMode::micro;
  if (settings.bn == "deferred" || settings.bn == "deferred+sync") return BatchNormMode::deferred;
  CONVOY_CHECK(settings.bn == "frozen",
               "--bn {} is none of micro, deferred, sync, frozen, deferred+sync", settings.bn);
  return BatchNormMode::frozen;
}

Ranks ranks_of(const TrainingJob& job) {
  return {job.group, layout_of(job.settings, job.group ? job.group->size() : 1)};
}

Division division_of(const Settings& settings, int replicas) {
  const bool sync = settings.bn == "sync" || settings.bn == "deferred+sync";
  return {replicas, {settings.micro_batch_size, settings.micro_batches}, sync && replicas > 1};
}

std::int64_t image_size_of(const Settings& settings) {
  const DataKind kind = parse_data_spec(settings.data).kind;
  const bool small = kind == DataKind::fashion_mnist || kind == DataKind::cifar10;
  return settings.image_size.value_or(small ? kSmallImageSize : kImageSize);
}

DataPair open_images(const Settings& settings) {
  return open_data(parse_data_spec(settings.data), data_options(settings));
}

DataPair open_rows(const Settings& settings, std::int64_t features, std::int64_t targets) {
  DataOptions options = data_options(settings);
  options.samples = SampleKind::rows;
  options.features = features;
  options.targets = targets;
  return open_data(parse_data_spec(settings.data), options);
}

}  // namespace convoy
