// What kernels over activations (n, c, spatial) share on the host: where elements lie in the
// layouts, how many channels a thread takes at once, and checks of operands.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "kernels/cuda/layout.h"
#include "kernels/shapes.h"

namespace convoy::CONVOY_GPU {

/// Element (n, c, s) lies at n * image + c * channel + s * position.
struct ActivationStrides {
  std::int64_t image, channel, position;
  friend bool operator==(const ActivationStrides&, const ActivationStrides&) = default;
};

/// `internal` for a layout that activations do not have.
ActivationStrides strides_of(const char* kernel, ConstBuffer buffer, std::int64_t channels,
                             std::int64_t spatial);

/// A pointer and its strides: what a kernel that takes any mix of layouts gets.
template <class Pointer>
struct Activation {
  Pointer data = nullptr;
  ActivationStrides strides = {};
};
using ActivationIn = Activation<const void*>;
using ActivationOut = Activation<void*>;

/// An operand of (n, channels, spatial); one left out stays left out.
ActivationIn activation(const char* kernel, ConstBuffer buffer, std::int64_t channels,
                        std::int64_t spatial);
ActivationOut activation_out(const char* kernel, Buffer buffer, std::int64_t channels,
                             std::int64_t spatial);

/// Neighbouring channels that one thread takes with 16-byte accesses: 8 of bf16, 4 of f32, where
/// all operands given lie channels last, aligned, in rows of whole vectors; else 1.
int channel_vector(DType dtype, std::int64_t channels, std::initializer_list<ConstBuffer> operands);

/// The one dtype of all operands given: f32, f64 or bf16; `usage` on others and where two differ.
DType activation_dtype(const char* kernel, std::initializer_list<ConstBuffer> operands);

/// What parameters, gradients and losses beside activations of `dtype` are: f64 for f64, else f32.
DType parameter_dtype(DType dtype);

/// Elements of a buffer that is f32 or f64.
struct FloatOrDouble {
  const void* data = nullptr;
  bool is_double = false;
  __device__ __forceinline__ double operator[](std::int64_t i) const {
    return is_double ? static_cast<const double*>(data)[i]
                     : static_cast<double>(static_cast<const float*>(data)[i]);
  }
};

/// A plain buffer of f32 or f64; `internal` on anything else.
FloatOrDouble float_or_double(const char* kernel, const char* operand, ConstBuffer buffer);

}  // namespace convoy::CONVOY_GPU
