#include "tests/support/op_case.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "kernels/backends.h"
#include "kernels/base/bf16.h"
#include "kernels/emulator/device_memory.h"
#include "kernels/emulator/machine.h"
#include "tests/support/catch.h"
#include "tests/support/formula.h"

namespace convoy::testing {
namespace {

using Bytes = std::vector<unsigned char>;

constexpr std::size_t kGuardBytes = 256;
constexpr unsigned char kGuard = 0xA5;
// As floats: NaN, so that a result that nobody has written is seen.
constexpr unsigned char kPoison = 0xFF;

// `value` as T holds it. Inputs are floats already where T is bf16.
template <class T>
T to_type(double value) {
  if constexpr (std::is_same_v<T, Bf16>) {
    return Bf16(static_cast<float>(value));
  } else {
    return static_cast<T>(value);
  }
}

template <class T>
Bytes encode_as(const std::vector<double>& values) {
  Bytes bytes(values.size() * sizeof(T));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const T typed = to_type<T>(values[i]);
    std::memcpy(bytes.data() + i * sizeof(T), &typed, sizeof typed);
  }
  return bytes;
}

Bytes encode(const std::vector<double>& values, DType dtype) {
  if (dtype == DType::f32) return encode_as<float>(values);
  if (dtype == DType::f64) return encode_as<double>(values);
  if (dtype == DType::bf16) return encode_as<Bf16>(values);
  if (dtype == DType::i64) return encode_as<std::int64_t>(values);
  if (dtype == DType::i32) return encode_as<std::int32_t>(values);
  return encode_as<std::uint8_t>(values);
}

template <class T>
std::vector<double> decode_as(const Bytes& bytes) {
  std::vector<T> typed(bytes.size() / sizeof(T));
  if (!typed.empty()) std::memcpy(typed.data(), bytes.data(), typed.size() * sizeof(T));
  if constexpr (std::is_same_v<T, Bf16>) {
    std::vector<double> values;
    for (Bf16 value : typed) values.push_back(static_cast<float>(value));
    return values;
  } else {
    return {typed.begin(), typed.end()};
  }
}

std::vector<double> decode(const Bytes& bytes, DType dtype) {
  if (dtype == DType::f32) return decode_as<float>(bytes);
  if (dtype == DType::f64) return decode_as<double>(bytes);
  if (dtype == DType::bf16) return decode_as<Bf16>(bytes);
  if (dtype == DType::i64) return decode_as<std::int64_t>(bytes);
  if (dtype == DType::i32) return decode_as<std::int32_t>(bytes);
  return decode_as<std::uint8_t>(bytes);
}

// Whether checks watch each byte of the device's memory (kernels/emulator/checks). They see
// accesses outside of a block and reads of what was never written, unless a test lays guards and
// poison.
bool is_watched(const Device& device) {
  return device.type == DeviceType::emu && emulator::memory_observer() != nullptr;
}

// Device memory of one operand between two guards.
class GuardedMemory {
 public:
  GuardedMemory(DeviceContext& context, std::size_t bytes)
      : context_(context),
        stream_(context.default_stream()),
        guard_(is_watched(context.device()) ? 0 : kGuardBytes),
        bytes_(bytes),
        block_(context.memory().allocate(bytes + 2 * guard_, &stream_)) {
    if (guard_ > 0) write(Bytes(bytes + 2 * guard_, kGuard), 0);
  }

  void* data() const { return static_cast<unsigned char*>(block_.data()) + guard_; }
  void set(const Bytes& content) { write(content, guard_); }
  void poison() {
    if (guard_ > 0) set(Bytes(bytes_, kPoison));
  }
  Bytes content() const { return read(guard_, bytes_); }
  bool guards_intact() const {
    const Bytes expected(guard_, kGuard);
    return read(0, guard_) == expected && read(guard_ + bytes_, guard_) == expected;
  }
  std::size_t bytes() const { return bytes_; }

 private:
  void write(const Bytes& content, std::size_t offset) {
    auto* start = static_cast<unsigned char*>(block_.data());
    context_.copy_in(stream_, start + offset, content.data(), content.size());
  }
  Bytes read(std::size_t offset, std::size_t count) const {
    Bytes content(count);
    auto* start = static_cast<unsigned char*>(block_.data());
    context_.copy_out(stream_, content.data(), start + offset, count);
    return content;
  }

  DeviceContext& context_;
  Stream& stream_;
  std::size_t guard_;
  std::size_t bytes_;
  MemoryPool::Block block_;
};

bool is_weight(Slot slot) {
  return slot == Slot::conv_weight || slot == Slot::plain_weight;
}

LayoutId layout_of(Slot slot, const Conv2dLayouts& layouts) {
  switch (slot) {
    case Slot::plain:
    case Slot::plain_weight:
      return kPlain;
    case Slot::conv_x:
      return layouts.x;
    case Slot::conv_weight:
      return layouts.weight;
    case Slot::conv_y:
      return layouts.y;
  }
  return kPlain;
}

Conv2dLayouts layouts_of(const OpCase& op_case, const Variant& variant) {
  if (!variant.preferred) return {};
  return context(variant.device).kernels().conv2d_layouts(op_case.layouts, variant.dtype);
}

bool uses_a_layout(const OpCase& op_case, const Variant& variant) {
  const Conv2dLayouts layouts = layouts_of(op_case, variant);
  for (const Operand& operand : op_case.operands) {
    if (layout_of(operand.slot, layouts) != kPlain) return true;
  }
  return false;
}

// One operand on a device.
class DeviceOperand {
 public:
  DeviceOperand(DeviceContext& context, const Operand& operand, DType run_dtype, LayoutId layout)
      : context_(context),
        operand_(operand),
        dtype_(operand.dtype_in(run_dtype)),
        layout_(layout),
        memory_(context, context.kernels().layout_bytes(layout, operand.shape, dtype_)) {}

  const Operand& operand() const { return operand_; }
  Buffer buffer() const { return {memory_.data(), dtype_, layout_}; }
  std::int64_t stored() const { return std::int64_t(memory_.bytes() / size_of(dtype_)); }
  Bytes raw() const { return memory_.content(); }
  bool guards_intact() const { return memory_.guards_intact(); }
  bool is_result() const { return operand_.use == Use::output || operand_.use == Use::in_place; }

  // Gives inputs their values and outputs their poison.
  void reset() {
    if (operand_.use == Use::output || operand_.use == Use::scratch) {
      memory_.poison();
      return;
    }
    const Bytes plain = encode(operand_.values, dtype_);
    if (layout_ == kPlain) return memory_.set(plain);
    GuardedMemory staging(context_, plain.size());
    staging.set(plain);
    reorder(Buffer{staging.data(), dtype_, kPlain}, buffer());
  }

  std::vector<double> values() const {
    if (layout_ == kPlain) return decode(raw(), dtype_);
    GuardedMemory staging(context_, operand_.shape.count() * size_of(dtype_));
    reorder(buffer(), Buffer{staging.data(), dtype_, kPlain});
    return decode(staging.content(), dtype_);
  }

  // Whether what is stored beside the values is zero.
  bool padding_is_zero() const {
    if (stored() == operand_.shape.count()) return true;
    double all = 0, wanted = 0;
    for (double value : decode(raw(), dtype_)) all += value != 0;
    for (double value : values()) wanted += value != 0;
    return all == wanted;
  }

 private:
  void reorder(ConstBuffer from, Buffer to) const {
    context_.kernels().reorder(context_.default_stream(), operand_.shape, from, to);
    context_.default_stream().synchronize();
  }

  DeviceContext& context_;
  const Operand& operand_;
  DType dtype_;
  LayoutId layout_;
  GuardedMemory memory_;
};

std::vector<DeviceOperand> place(const OpCase& op_case, const Variant& variant) {
  DeviceContext& device = context(variant.device);
  const Conv2dLayouts layouts = layouts_of(op_case, variant);
  std::vector<DeviceOperand> result;
  result.reserve(op_case.operands.size());
  for (const Operand& operand : op_case.operands) {
    const bool full = layouts.full_weight && is_weight(operand.slot);
    result.emplace_back(device, operand, full ? DType::f32 : variant.dtype,
                        layout_of(operand.slot, layouts));
  }
  return result;
}

void launch(const OpCase& op_case, const Variant& variant, std::vector<DeviceOperand>& operands) {
  DeviceContext& device = context(variant.device);
  Launch call{device.kernels(), device.default_stream(), {}, {}};
  for (DeviceOperand& operand : operands) {
    operand.reset();
    call.buffers[operand.operand().name] = operand.buffer();
    call.stored[operand.operand().name] = operand.stored();
  }
  op_case.launch(call);
  device.default_stream().synchronize();
}

std::vector<Bytes> contents(const std::vector<DeviceOperand>& operands) {
  std::vector<Bytes> result;
  for (const DeviceOperand& operand : operands) result.push_back(operand.raw());
  return result;
}

// Runs the case again, on an emulated GPU under other orders of threads and blocks, and looks for
// bits that differ.
void repeat(const OpCase& op_case, const Variant& variant, std::vector<DeviceOperand>& operands,
            const std::vector<Bytes>& first, std::vector<std::string>& faults) {
  using emulator::machine::Order;
  auto once = [&](const char* which) {
    launch(op_case, variant, operands);
    if (contents(operands) != first) faults.push_back(std::string("the ") + which + " run differs");
  };
  if (variant.device.type != DeviceType::emu) return once("second");
  for (const auto& [order, which] :
       {std::pair{Order::reverse, "reverse"}, {Order::random, "random"}}) {
    emulator::machine::MachineOptions options = emulator::machine::machine_options();
    options.order = order;
    const emulator::machine::MachineOptionsScope scope(options);
    once(which);
  }
}

// What a launch did to memory that it should not have.
std::vector<std::string> memory_faults(const OpCase& op_case,
                                       const std::vector<DeviceOperand>& operands,
                                       const std::vector<Bytes>& before,
                                       const std::vector<Bytes>& after) {
  std::vector<std::string> faults;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const std::string& name = operands[i].operand().name;
    if (!operands[i].guards_intact()) faults.push_back("bytes beside " + name + " were written");
    if (operands[i].operand().use == Use::input && before[i] != after[i]) {
      faults.push_back("input " + name + " was written");
    }
    if (operands[i].is_result() && op_case.zero_padding && !operands[i].padding_is_zero()) {
      faults.push_back("padding of " + name + " is not zero");
    }
  }
  return faults;
}

std::vector<double> rounded(const std::vector<double>& values, DType dtype) {
  return decode(encode(values, dtype), dtype);
}

// Values that `dtype` holds too, so that all runs start from the same.
OpCase rounded(OpCase op_case, DType dtype) {
  for (Operand& operand : op_case.operands) {
    if (operand.dtype && *operand.dtype != DType::f64) continue;
    operand.values = rounded(operand.values, dtype);
  }
  return op_case;
}

bool follows_the_run(const OpCase& op_case) {
  return std::any_of(op_case.operands.begin(), op_case.operands.end(),
                     [](const Operand& operand) { return !operand.dtype; });
}

// Variants of `device` in `dtype`: without a layout of its own, preferred would be plain again.
void add_variants(const OpCase& op_case, const Device& device, DType dtype,
                  std::vector<Variant>& variants) {
  variants.push_back({device, dtype, false});
  const Variant preferred{device, dtype, true};
  if (uses_a_layout(op_case, preferred)) variants.push_back(preferred);
}

void check_in(const OpCase& op_case, const std::vector<Variant>& variants) {
  if (variants.empty()) return;
  const Results expected = run(op_case, {"ref:0", DType::f64});
  for (const Variant& variant : variants) {
    compare(op_case, variant, run(op_case, variant), expected);
  }
}

}  // namespace

OpCase& OpCase::input(const std::string& operand, const Shape& shape, Slot slot,
                      std::vector<double> values) {
  if (values.empty()) values = signed_values(name + "/" + operand, shape.count());
  operands.push_back({operand, shape, Use::input, slot, {}, std::move(values), {}, false});
  return *this;
}

OpCase& OpCase::input_of(DType dtype, const std::string& operand, const Shape& shape,
                         std::vector<double> values) {
  input(operand, shape, Slot::plain, std::move(values));
  operands.back().dtype = dtype;
  return *this;
}

OpCase& OpCase::output(const std::string& operand, const Shape& shape, Slot slot,
                       std::optional<OpClass> result_class) {
  operands.push_back({operand, shape, Use::output, slot, {}, {}, result_class, false});
  return *this;
}

OpCase& OpCase::output_of(DType dtype, const std::string& operand, const Shape& shape,
                          std::optional<OpClass> result_class) {
  operands.push_back({operand, shape, Use::output, Slot::plain, dtype, {}, result_class, false});
  return *this;
}

OpCase& OpCase::in_place(const std::string& operand, const Shape& shape, Slot slot,
                         std::vector<double> values) {
  input(operand, shape, slot, std::move(values));
  operands.back().use = Use::in_place;
  return *this;
}

OpCase& OpCase::scratch_of(DType dtype, const std::string& operand, const Shape& shape, Slot slot) {
  operands.push_back({operand, shape, Use::scratch, slot, dtype, {}, {}, false});
  return *this;
}

OpCase& OpCase::full(std::initializer_list<const char*> names) {
  for (Operand& operand : operands) {
    if (std::find(names.begin(), names.end(), operand.name) != names.end()) operand.full = true;
  }
  return *this;
}

OpCase& OpCase::run(std::function<void(const Launch&)> function) {
  launch = std::move(function);
  return *this;
}

OpCase with_integers(OpCase op_case) {
  op_case.op_class = OpClass::exact;
  for (Operand& operand : op_case.operands) {
    if (operand.use != Use::input) continue;
    operand.values = integers(op_case.name + "/" + operand.name, operand.shape.count(), 4);
  }
  return op_case;
}

std::string to_string(const Variant& variant) {
  return to_string(variant.device) + " " + name(variant.dtype) +
         (variant.preferred ? " preferred" : " plain");
}

std::vector<Device> tested_devices() {
  if (is_watched("emu:0")) return {"emu:0"};
  std::vector<Device> devices = {"ref:0", "cpu:0", "emu:0"};
  if (device_count(DeviceType::cuda) > 0) devices.emplace_back("cuda:0");
  return devices;
}

std::vector<Variant> float_variants(const OpCase& op_case) {
  return variants_in(DType::f32, op_case);
}

bool computes_in(DType dtype, const Device& device) {
  if (dtype == DType::f32 || is_gpu(device)) return true;
  return dtype == DType::bf16 && device.type == DeviceType::cpu && cpu::why_no_bf16().empty();
}

std::vector<Variant> variants_in(DType dtype, const OpCase& op_case) {
  std::vector<Variant> variants;
  for (const Device& device : tested_devices()) {
    if (computes_in(dtype, device)) add_variants(op_case, device, dtype, variants);
  }
  return variants;
}

Outcome outcome(const OpCase& op_case, const Variant& variant) {
  std::vector<DeviceOperand> operands = place(op_case, variant);
  for (DeviceOperand& operand : operands) operand.reset();
  const std::vector<Bytes> before = contents(operands);
  launch(op_case, variant, operands);
  const std::vector<Bytes> first = contents(operands);
  Outcome result{{}, memory_faults(op_case, operands, before, first)};
  repeat(op_case, variant, operands, first, result.faults);
  for (const DeviceOperand& operand : operands) {
    if (operand.is_result()) result.results[operand.operand().name] = operand.values();
  }
  return result;
}

Results run(const OpCase& op_case, const Variant& variant) {
  INFO(op_case.name << " on " << to_string(variant));
  Outcome result = outcome(op_case, variant);
  const std::vector<std::string> none;
  CHECK(result.faults == none);
  return result.results;
}

void compare(const OpCase& op_case, const Variant& variant, const Results& actual,
             const Results& expected) {
  for (const Operand& operand : op_case.operands) {
    if (!expected.contains(operand.name)) continue;
    INFO(op_case.name << " on " << to_string(variant) << ", result " << operand.name);
    // What a run in bf16 leaves in other types was computed in float.
    const bool bf16 = operand.dtype_in(variant.dtype) == DType::bf16;
    const DType dtype = variant.dtype == DType::bf16 && !bf16 ? DType::f32 : variant.dtype;
    OpClass op_class = operand.op_class.value_or(op_case.op_class);
    if (op_class == OpClass::statistics && variant.dtype == DType::bf16) op_class = OpClass::sum;
    std::vector<double> wanted = expected.at(operand.name);
    if (bf16 && op_class == OpClass::exact) wanted = rounded(wanted, DType::bf16);
    const Tolerance allowed = tolerance(op_class, dtype, op_case.terms);
    CHECK(difference(actual.at(operand.name), wanted, operand.shape, allowed) == kNoDifference);
  }
}

void check(const OpCase& given) {
  const OpCase as_float = rounded(given, DType::f32);
  std::vector<Variant> variants = float_variants(given);
  if (follows_the_run(given)) {
    const std::vector<Variant> in_double = variants_in(DType::f64, given);
    variants.insert(variants.end(), in_double.begin(), in_double.end());
    if (given.takes_bf16) {
      check_in(rounded(given, DType::bf16), variants_in(DType::bf16, given));
    }
  }
  check_in(as_float, variants);
}

void check_digests(const OpCase& op_case, const std::vector<ExpectedDigest>& expected,
                   double tolerance, double float_tolerance) {
  auto hold = [&](const Variant& variant, double allowed) {
    const Results results = run(op_case, variant);
    for (const ExpectedDigest& one : expected) {
      INFO(op_case.name << " on " << to_string(variant) << ", result " << one.result);
      CHECK(difference(digest(one.probe, results.at(one.result)), one.digest, allowed) ==
            kNoDifference);
    }
  };
  hold({"ref:0", DType::f64}, tolerance);
  for (const Variant& variant : variants_in(DType::f64, op_case)) hold(variant, tolerance);
  for (const Variant& variant : float_variants(op_case)) hold(variant, float_tolerance);
}

}  // namespace convoy::testing
