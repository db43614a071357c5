// What ops share: their device's kernels and stream, and checks of operands.
#pragma once

#include <initializer_list>
#include <vector>

#include "engine/tensor/tensor.h"
#include "kernels/base/context.h"
#include "kernels/kernel_list.h"

namespace convoy {

inline const KernelTable& kernels_of(const Tensor& x) {
  return context(x.device()).kernels();
}

inline Stream& stream_of(const Tensor& x) {
  return current_stream(x.device());
}

/// Whether there is anything to compute: a batch may have 0 images, and kernels get none of those.
inline bool has_values(const Tensor& x) {
  return x.numel() > 0;
}

/// Buffer of a tensor that may be undefined.
inline Buffer buffer_or_none(const Tensor& x) {
  return x.defined() ? x.buffer() : Buffer{};
}

/// Zeros into all tensors that are defined: the gradients of parameters that no image has met.
std::vector<Tensor> zeroed(std::vector<Tensor> gradients);

/// `usage` unless all defined tensors have one device and one floating type.
void check_operands(const char* op, std::initializer_list<Tensor> tensors);

/// The same of an op with parameters: these may also be f32 where `values` are bf16.
void check_operands(const char* op, std::initializer_list<Tensor> values,
                    std::initializer_list<Tensor> parameters);

/// The values of a parameter in the type of what it meets: an f32 master is rounded to bf16, in its
/// own layout. Not differentiable.
Tensor as_operand(const Tensor& parameter, DType type);

/// `usage` unless `x` has `rank` dimensions.
void check_rank(const char* op, const char* operand, const Tensor& x, int rank);

}  // namespace convoy
