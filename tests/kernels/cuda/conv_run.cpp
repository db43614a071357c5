#include "tests/kernels/cuda/conv_run.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "kernels/base/bf16.h"
#include "tests/support/catch.h"
#include "tests/support/formula.h"

namespace convoy::testing {
namespace {

constexpr std::size_t kGuard = 256;
constexpr auto kGuardByte = std::byte{0xA5};

ConvOperands operands_of(const Conv2dShape& s,
                         const std::function<std::vector<double>(const char*, std::int64_t)>& of) {
  return {s, of("x", s.x().count()), of("w", s.weight().count()), of("b", s.k),
          of("dy", s.y().count())};
}

double rounded(double value, DType dtype) {
  const auto narrow = static_cast<float>(value);
  return dtype == DType::bf16 ? static_cast<float>(Bf16(narrow)) : narrow;
}

void store(std::byte* to, double value, DType dtype) {
  const auto narrow = static_cast<float>(value);
  const Bf16 half(narrow);
  if (dtype == DType::bf16) {
    std::memcpy(to, &half, sizeof half);
  } else {
    std::memcpy(to, &narrow, sizeof narrow);
  }
}

double load(const std::byte* from, DType dtype) {
  float value;
  Bf16 half;
  if (dtype == DType::f32) {
    std::memcpy(&value, from, sizeof value);
    return value;
  }
  std::memcpy(&half, from, sizeof half);
  return static_cast<float>(half);
}

std::int64_t stored_count(LayoutId layout, const Shape& shape) {
  return shape.with(1, CONVOY_GPU::stored_channels(layout, shape[1])).count();
}

// Calls visit(plain index, stored index) for each value, and (-1, stored index) for padding.
template <class Visit>
void for_each_stored(const Shape& s, LayoutId layout, Visit visit) {
  const std::int64_t stored = CONVOY_GPU::stored_channels(layout, s[1]), plane = s[2] * s[3];
  for (std::int64_t i = 0; i < s[0] * plane * stored; ++i) {
    const std::int64_t b = i % stored, place = i / stored % plane, a = i / stored / plane;
    visit(b < s[1] ? (a * s[1] + b) * plane + place : -1, i);
  }
}

}  // namespace

ConvOperands integer_operands(const Conv2dShape& shape) {
  return operands_of(shape,
                     [](const char* name, std::int64_t count) { return integers(name, count, 1); });
}

ConvOperands bf16_operands(const Conv2dShape& shape) {
  return operands_of(shape, [](const char* name, std::int64_t count) {
    std::vector<double> values = signed_values(name, count);
    for (double& value : values) value = rounded(value, DType::bf16);
    return values;
  });
}

ConvResults reference_results(const ConvOperands& o, bool input_gradient) {
  DeviceContext& ref = context("ref:0");
  Stream& stream = ref.default_stream();
  const auto in = [](const std::vector<double>& v) { return ConstBuffer{v.data(), DType::f64}; };
  ConvResults results;
  const auto out = [](std::vector<double>& v, const Shape& shape) {
    v.assign(shape.count(), 0);
    return Buffer{v.data(), DType::f64};
  };
  const Conv2dShape& s = o.shape;
  ref.kernels().conv2d_forward(stream, s, in(o.x), in(o.w), in(o.b), out(results.y, s.y()));
  ref.kernels().conv2d_weight_gradient(stream, s, in(o.x), in(o.dy), out(results.dw, s.weight()),
                                       {});
  if (input_gradient) {
    ref.kernels().conv2d_input_gradient(stream, s, in(o.dy), in(o.w), out(results.dx, s.x()));
  }
  stream.synchronize();
  return results;
}

GpuRun::~GpuRun() {
  try {
    stream().synchronize();
  } catch (...) {  // told by the call that waited for it
    static_cast<void>(0);
  }
}

GpuRun::Memory& GpuRun::allocate(std::size_t bytes, DType dtype, LayoutId layout) {
  Memory memory{context_.memory().allocate(bytes + 2 * kGuard, &stream()), {}, bytes, {}};
  auto* data = static_cast<std::byte*>(memory.block.data());
  const std::vector<std::byte> guard(bytes + 2 * kGuard, kGuardByte);
  context_.copy_in(stream(), data, guard.data(), guard.size());
  memory.buffer = {data + kGuard, dtype, layout};
  return memory_.emplace_back(std::move(memory));
}

Buffer GpuRun::put(const Shape& shape, const std::vector<double>& values, DType dtype,
                   LayoutId layout) {
  const std::size_t size = size_of(dtype);
  std::vector<std::byte> bytes(stored_count(layout, shape) * size);
  for_each_stored(shape, layout, [&](std::int64_t plain, std::int64_t stored) {
    store(bytes.data() + stored * size, plain < 0 ? 0 : values[plain], dtype);
  });
  Memory& memory = allocate(bytes.size(), dtype, layout);
  context_.copy_in(stream(), memory.buffer.data, bytes.data(), bytes.size());
  memory.input = std::move(bytes);
  return memory.buffer;
}

Buffer GpuRun::make(const Shape& shape, DType dtype, LayoutId layout) {
  Memory& memory = allocate(stored_count(layout, shape) * size_of(dtype), dtype, layout);
  const std::vector<std::byte> nan(memory.bytes, std::byte{0xFF});
  context_.copy_in(stream(), memory.buffer.data, nan.data(), nan.size());
  return memory.buffer;
}

const GpuRun::Memory& GpuRun::find(ConstBuffer buffer) const {
  return *std::find_if(memory_.begin(), memory_.end(),
                       [&](const Memory& memory) { return memory.buffer.data == buffer.data; });
}

std::vector<std::byte> GpuRun::read(const void* from, std::size_t bytes) {
  std::vector<std::byte> result(bytes);
  context_.copy_out(stream(), result.data(), from, bytes);
  return result;
}

std::vector<std::byte> GpuRun::bits(ConstBuffer buffer) {
  const Memory& memory = find(buffer);
  const auto* begin = static_cast<const std::byte*>(buffer.data);
  for (const std::byte* guard : {begin - kGuard, begin + memory.bytes}) {
    const std::vector<std::byte> bytes = read(guard, kGuard);
    CHECK(std::count(bytes.begin(), bytes.end(), kGuardByte) == kGuard);
  }
  return read(buffer.data, memory.bytes);
}

std::vector<double> GpuRun::values(const Shape& shape, ConstBuffer buffer) {
  const std::vector<std::byte> stored_bits = bits(buffer);
  std::vector<double> values(shape.count());
  std::int64_t padding = 0;  // that is not zero
  for_each_stored(shape, buffer.layout, [&](std::int64_t plain, std::int64_t stored) {
    const double value = load(stored_bits.data() + stored * size_of(buffer.dtype), buffer.dtype);
    if (plain >= 0) values[plain] = value;
    if (plain < 0 && value != 0) ++padding;
  });
  CHECK(padding == 0);
  return values;
}

bool GpuRun::inputs_are_unchanged() {
  return std::all_of(memory_.begin(), memory_.end(), [&](const Memory& memory) {
    return memory.input.empty() || read(memory.buffer.data, memory.bytes) == memory.input;
  });
}

LayoutId channels_layout(const Conv2dShape& shape) {
  return shape.c % 4 == 0 ? CONVOY_GPU::kChannelsLast : CONVOY_GPU::kChannelsLast4;
}

}  // namespace convoy::testing
