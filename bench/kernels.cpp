#include "bench/kernels.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>

#include "bench/median.h"
#include "kernels/backends.h"
#include "kernels/base/bf16.h"
#include "kernels/base/error.h"
#include "kernels/base/philox.h"

namespace convoy {
namespace {

using Clock = std::chrono::steady_clock;

// Larger than the caches of GPUs: operands of one sample's calls must not be found there.
constexpr std::size_t kPastCaches = std::size_t{192} << 20;
constexpr std::size_t kMostSets = 16;
constexpr std::size_t kPatternValues = std::size_t{1} << 18;

double normal_value(const PhiloxBlock& words) {
  const double u = unit_of(std::uint64_t{words[0]} << 32 | words[1]);
  const double v = unit_of(std::uint64_t{words[2]} << 32 | words[3]);
  return std::sqrt(-2 * std::log(1 - u)) * std::cos(2 * 3.14159265358979323846 * v);
}

double value_of(const OperandOfCase& operand, std::uint32_t i) {
  const PhiloxBlock words = philox({i, 0, 0, 0}, {11, 12});
  switch (operand.content) {
    case Content::normal:
      return operand.dtype == DType::u8 ? words[0] & 0xff : normal_value(words);
    case Content::positive:
      return 1 + unit_of(std::uint64_t{words[0]} << 32);
    case Content::labels:
    case Content::window_places:
      return static_cast<double>(words[0] % operand.limit);
  }
  return 0;
}

template <class T>
void store(std::vector<unsigned char>& bytes, std::size_t i, T value) {
  std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof value);
}

// The first values of an operand; the rest of its memory repeats them.
std::vector<unsigned char> pattern(const OperandOfCase& operand) {
  const std::size_t size = size_of(operand.dtype);
  const std::size_t count = std::min(operand.bytes / size, kPatternValues);
  std::vector<unsigned char> bytes(count * size);
  for (std::size_t i = 0; i < count; ++i) {
    const double value = value_of(operand, static_cast<std::uint32_t>(i));
    switch (operand.dtype) {
      case DType::f32:
        store(bytes, i, static_cast<float>(value));
        break;
      case DType::f64:
        store(bytes, i, value);
        break;
      case DType::bf16:
        store(bytes, i, Bf16(static_cast<float>(value)));
        break;
      case DType::i64:
        store(bytes, i, static_cast<std::int64_t>(value));
        break;
      case DType::i32:
        store(bytes, i, static_cast<std::int32_t>(value));
        break;
      case DType::u8:
        store(bytes, i, static_cast<std::uint8_t>(value));
        break;
    }
  }
  return bytes;
}

// One set of operands of a case on a device.
class OperandSet {
 public:
  OperandSet(DeviceContext& device, const KernelCase& of) {
    for (const OperandOfCase& operand : of.operands) {
      if (operand.bytes == 0) {
        buffers_.emplace_back();
        continue;
      }
      blocks_.push_back(device.memory().allocate(operand.bytes, &device.default_stream()));
      buffers_.push_back({blocks_.back().data(), operand.dtype, operand.layout});
      fill(device, operand, static_cast<char*>(blocks_.back().data()));
    }
  }
  std::span<const Buffer> buffers() const { return buffers_; }

 private:
  static void fill(DeviceContext& device, const OperandOfCase& operand, char* data) {
    Stream& stream = device.default_stream();
    const std::vector<unsigned char> first = pattern(operand);
    device.copy_in(stream, data, first.data(), first.size());
    for (std::size_t done = first.size(); done < operand.bytes;) {
      const std::size_t next = std::min(done, operand.bytes - done);
      device.copy(stream, data + done, data, next);
      done += next;
    }
  }

  std::vector<MemoryPool::Block> blocks_;
  std::vector<Buffer> buffers_;
};

struct Times {
  double median = 0, best = 0;
};

// Times of one call of `call(i)`, which queues work: on GPUs the mean of many in a row.
template <class Queue>
Times time_calls(DeviceContext& device, std::int64_t samples, const Queue& call) {
  const bool gpu = device.device().type == DeviceType::cuda;
  const int calls = gpu ? 50 : 1;
  Stream& stream = device.default_stream();
  for (int i = 0; i < (gpu ? 20 : 1); ++i) call(i);
  stream.synchronize();
  std::vector<double> seconds;
  for (std::int64_t sample = 0; sample < samples; ++sample) {
    const Clock::time_point start = Clock::now();
    for (int i = 0; i < calls; ++i) call(i);
    stream.synchronize();
    seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count() / calls);
  }
  return {median(seconds), *std::min_element(seconds.begin(), seconds.end())};
}

Times time_case(DeviceContext& device, std::int64_t samples, const KernelCase& of) {
  const bool gpu = device.device().type == DeviceType::cuda;
  const auto bytes = static_cast<std::size_t>(of.bytes());
  const std::size_t wanted = gpu ? (kPastCaches + bytes - 1) / std::max<std::size_t>(bytes, 1) : 1;
  std::vector<OperandSet> sets;
  for (std::size_t i = 0; i < std::clamp<std::size_t>(wanted, 1, kMostSets); ++i) {
    sets.emplace_back(device, of);
  }
  const KernelTable& kernels = device.kernels();
  return time_calls(device, samples, [&](int i) {
    of.call(kernels, device.default_stream(),
            sets[static_cast<std::size_t>(i) % sets.size()].buffers());
  });
}

double copy_rate(DeviceContext& device, std::int64_t samples) {
  const bool gpu = device.device().type == DeviceType::cuda;
  const std::size_t bytes = gpu ? std::size_t{1} << 30 : std::size_t{64} << 20;
  Stream& stream = device.default_stream();
  const auto from = device.memory().allocate(bytes, &stream);
  const auto to = device.memory().allocate(bytes, &stream);
  const Times times =
      time_calls(device, samples, [&](int) { device.copy(stream, to.data(), from.data(), bytes); });
  return 2 * static_cast<double>(bytes) / times.best;
}

// A product large enough for every tile and cache.
double product_rate(DeviceContext& device, DType dtype, std::int64_t samples) {
  const LinearShape s{8192, 8192, 8192};
  const std::size_t bytes = size_of(dtype) * 8192 * 8192;
  const OperandOfCase matrix{bytes, dtype};
  const KernelCase product{"linear_forward",
                           "8192x8192x8192",
                           0,
                           2.0 * 8192 * 8192 * 8192,
                           {matrix, matrix, matrix},
                           [s](const KernelTable& k, Stream& on, std::span<const Buffer> b) {
                             k.linear_forward(on, s, b[0], b[1], {}, b[2]);
                           }};
  return product.flops / time_case(device, samples, product).best;
}

// Kernels of the vendor's libraries while it lives; throws `usage` where there are none.
class VendorScope {
 public:
  explicit VendorScope(const DeviceContext& device) : device_(device.device()) {
    choose_kernels(device_, KernelChoice::vendor);
  }
  ~VendorScope() { choose_kernels(device_, KernelChoice::own); }
  VendorScope(const VendorScope&) = delete;
  VendorScope& operator=(const VendorScope&) = delete;

 private:
  const Device device_;
};

// Empty where the device has the vendor's kernels, else why not.
std::string lack_of_vendor(DeviceContext& device) {
  try {
    const VendorScope scope(device);
    return {};
  } catch (const Error& error) {
    return error.text();
  }
}

KernelCeilings measure_ceilings(DeviceContext& device, const KernelBenchOptions& options,
                                bool has_vendor) {
  KernelCeilings ceilings;
  ceilings.bytes_s = copy_rate(device, options.repeats);
  if (device.device().type != DeviceType::cuda) {
    ceilings.flops = device.measure_peak_flops();
    ceilings.source = "FMA loop";
  } else if (has_vendor) {
    const VendorScope scope(device);
    ceilings.flops = product_rate(device, options.cases.dtype, options.repeats);
    ceilings.source = "cuBLASLt";
  } else {
    ceilings.flops = product_rate(device, options.cases.dtype, options.repeats);
    ceilings.source = "own";
  }
  return ceilings;
}

KernelBenchRow row_of(const KernelCase& of, const Times& times, const KernelCeilings& ceilings) {
  KernelBenchRow row{of.name, of.shape, of.count, times.median, times.best, of.flops, of.bytes(),
                     0,       0,        {}};
  const double products = ceilings.flops > 0 ? of.flops / ceilings.flops : 0;
  row.limit_seconds = std::max(products, row.bytes / ceilings.bytes_s);
  row.share_of_limit = row.limit_seconds / row.seconds;
  return row;
}

}  // namespace

KernelBenchResult bench_kernels(const KernelBenchOptions& options,
                                const std::function<void(const KernelBenchRow&)>& told) {
  DeviceContext& device = context(options.device);
  CONVOY_CHECK(device.device().type != DeviceType::emu,
               "bench kernels: {} has no times, only figures", to_string(device.device()));
  if (options.tf32) device.set_tf32(true);
  KernelBenchResult result;
  result.vendor = lack_of_vendor(device);
  const bool has_vendor = result.vendor.empty();
  result.ceilings = measure_ceilings(device, options, has_vendor);
  const std::vector<KernelCase> cases = resnet50_cases(device.kernels(), options.cases);
  std::vector<KernelCase> theirs;
  if (has_vendor) {
    const VendorScope scope(device);
    theirs = resnet50_cases(device.kernels(), options.cases);
  }
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const Times times = time_case(device, options.repeats, cases[i]);
    KernelBenchRow row = row_of(cases[i], times, result.ceilings);
    if (has_vendor) {
      const VendorScope scope(device);
      row.vendor_seconds = time_case(device, options.repeats, theirs[i]).median;
    }
    told(row);
    result.rows.push_back(std::move(row));
  }
  return result;
}

std::vector<emulator::KernelFigures> bench_kernel_figures(const KernelBenchOptions& options) {
  DeviceContext& device = context(options.device);
  CONVOY_CHECK(device.device().type == DeviceType::emu,
               "bench kernels: figures are of emulated devices, not of {}",
               to_string(device.device()));
  device.set_tf32(options.tf32);
  Stream& stream = device.default_stream();
  emulator::start_kernel_figures();
  for (const KernelCase& of : resnet50_cases(device.kernels(), options.cases)) {
    const OperandSet operands(device, of);
    of.call(device.kernels(), stream, operands.buffers());
    stream.synchronize();
  }
  device.set_tf32(false);
  return emulator::take_kernel_figures();
}

}  // namespace convoy
