// Values in memory as float or bfloat16: choosing loops by type, and work in floats over both.
#pragma once

#include <algorithm>
#include <array>
#include <type_traits>

#include "kernels/base/buffer.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/parallel.h"

namespace convoy::cpu {

/// Calls use(T()) with float or Half16, as `dtype` (f32 or bf16) says.
template <class Use>
void with_values(DType dtype, const Use& use) {
  if (dtype == DType::bf16) return use(Half16{});
  use(float{});
}

/// The loops over T: those of equal names take equal arguments.
template <class T>
const auto& loops_of() {
  if constexpr (std::is_same_v<T, Half16>) {
    return half_loops();
  } else {
    return loops();
  }
}

/// y = x, from f32 or bf16 to the other, on the threads of this stream.
void convert_values(std::int64_t count, ConstBuffer x, Buffer y);

/// Elements that are at hand as floats at a time: few enough for the first cache.
inline constexpr std::int64_t kChunk = 1024;

/// Some elements of operands in f32 or bf16 as floats; those of operands left out are null.
template <std::size_t kInputs, std::size_t kOutputs>
class FloatChunk {
 public:
  FloatChunk(const std::array<ConstBuffer, kInputs>& in, const std::array<Buffer, kOutputs>& out,
             std::int64_t begin, std::int64_t size)
      : out_(out), begin_(begin), size_(size) {
    for (std::size_t i = 0; i < kInputs; ++i) inputs[i] = read(in[i], memory_[i].data());
    for (std::size_t i = 0; i < kOutputs; ++i) {
      outputs[i] = out[i].dtype == DType::bf16 && out[i] ? memory_[kInputs + i].data()
                   : out[i]                              ? out[i].template as<float>() + begin
                                                         : nullptr;
    }
  }
  ~FloatChunk() {
    for (std::size_t i = 0; i < kOutputs; ++i) {
      if (!out_[i] || out_[i].dtype != DType::bf16) continue;
      half_loops().narrow(size_, outputs[i], out_[i].template as<Half16>() + begin_);
    }
  }
  FloatChunk(const FloatChunk&) = delete;
  FloatChunk& operator=(const FloatChunk&) = delete;

  std::array<const float*, kInputs> inputs;
  std::array<float*, kOutputs> outputs;

 private:
  const float* read(ConstBuffer x, float* memory) const {
    if (!x) return nullptr;
    if (x.dtype != DType::bf16) return x.as<float>() + begin_;
    half_loops().widen(size_, x.as<Half16>() + begin_, memory);
    return memory;
  }

  std::array<Buffer, kOutputs> out_;
  std::int64_t begin_, size_;
  std::array<std::array<float, kChunk>, kInputs + kOutputs> memory_;
};

/// Calls work(size, inputs, outputs), pointers to floats, for pieces of a range of `count` elements
/// whose operands are f32 or bf16, on the threads of this stream.
template <std::size_t kInputs, std::size_t kOutputs, class Work>
void each_chunk(std::int64_t count, const std::array<ConstBuffer, kInputs>& in,
                const std::array<Buffer, kOutputs>& out, const Work& work) {
  auto is_half = [](const ConstBuffer& x) { return x && x.dtype == DType::bf16; };
  const bool half =
      std::any_of(in.begin(), in.end(), is_half) || std::any_of(out.begin(), out.end(), is_half);
  parallel_parts(count, [&](std::int64_t, std::int64_t begin, std::int64_t size) {
    const std::int64_t step = half ? kChunk : size;
    for (std::int64_t i = 0; i < size; i += step) {
      const std::int64_t now = std::min(step, size - i);
      FloatChunk<kInputs, kOutputs> chunk(in, out, begin + i, now);
      work(now, chunk.inputs, chunk.outputs);
    }
  });
}

}  // namespace convoy::cpu
