#include "tests/kernels/cpu/cpu_run.h"

#include <memory>
#include <random>

namespace convoy::testing {

Buffer CpuRun::make(const Shape& shape, LayoutId layout, DType dtype) {
  const std::size_t bytes = kernels().layout_bytes(layout, shape, dtype);
  blocks_.push_back(context_.memory().allocate(bytes, &stream()));
  const std::vector<unsigned char> noise(bytes, 0x5a);
  context_.copy_in(stream(), blocks_.back().data(), noise.data(), bytes);
  return {blocks_.back().data(), dtype, layout};
}

Buffer CpuRun::put(const Shape& shape, const std::vector<float>& values, LayoutId layout) {
  const Buffer plain = make(shape);
  context_.copy_in(stream(), plain.data, values.data(), values.size() * sizeof(float));
  if (layout == kPlain) return plain;
  const Buffer result = make(shape, layout);
  kernels().reorder(stream(), shape, plain, result);
  return result;
}

Buffer CpuRun::doubles(const std::vector<double>& values) {
  const Buffer result = make({std::ssize(values)}, kPlain, DType::f64);
  context_.copy_in(stream(), result.data, values.data(), values.size() * sizeof(double));
  return result;
}

std::vector<float> CpuRun::values(const Shape& shape, ConstBuffer buffer) {
  Buffer plain = make(shape);
  kernels().reorder(stream(), shape, buffer, plain);
  return memory<float>(plain, static_cast<std::size_t>(shape.count()));
}

std::vector<float> integers(std::int64_t count, int seed) {
  std::mt19937 random(static_cast<unsigned>(seed));
  std::vector<float> result;
  for (std::int64_t i = 0; i < count; ++i) {
    result.push_back(static_cast<float>(static_cast<int>(random() % 9) - 4));
  }
  return result;
}

std::vector<float> fractions(std::int64_t count, int seed) {
  std::mt19937 random(static_cast<unsigned>(seed));
  std::vector<float> result;
  for (std::int64_t i = 0; i < count; ++i) {
    result.push_back(static_cast<float>(random()) / 2147483648.0f - 1.0f);
  }
  return result;
}

}  // namespace convoy::testing
