// What kernels ask of their buffers, when they are called: the choice of the element type, and
// checks. The work runs later, on the device.
#pragma once

#include <initializer_list>

#include "kernels/base/bf16.h"
#include "kernels/base/buffer.h"
#include "kernels/base/stream.h"
#include "kernels/cuda/platform.h"

namespace convoy::CONVOY_GPU {

/// The dtype that all given operands share, as they share their layout; operands left out are
/// passed over. `usage` where two dtypes differ, `internal` where layouts do or no operand is
/// given.
DType common_dtype(const char* kernel, std::initializer_list<ConstBuffer> operands);

/// `usage` unless all operands given share one dtype.
void check_same_dtype(const char* kernel, std::initializer_list<ConstBuffer> operands);

/// `internal` unless all operands given share one layout.
void check_same_layout(const char* kernel, std::initializer_list<ConstBuffer> operands);

/// `internal` unless all operands given are kPlain.
void check_plain(const char* kernel, std::initializer_list<ConstBuffer> operands);

/// `internal` unless `buffer` is given, kPlain and of `dtype`.
void check_is(const char* kernel, const char* operand, ConstBuffer buffer, DType dtype);

/// `usage`: `kernel` has no code for `dtype`; `expected` lists what it takes.
[[noreturn]] void fail_dtype(const char* kernel, DType dtype, const char* expected);

/// Calls `use(T())` with float, double or Bf16, as `dtype` says; `usage` on any other.
template <class Use>
void with_floating(const char* kernel, DType dtype, const Use& use) {
  if (dtype == DType::f32) return use(float());
  if (dtype == DType::f64) return use(double());
  if (dtype == DType::bf16) return use(Bf16());
  fail_dtype(kernel, dtype, "f32, f64 or bf16");
}

/// The same with float or double alone: for what is kept in full precision.
template <class Use>
void with_full(const char* kernel, DType dtype, const Use& use) {
  if (dtype == DType::f32) return use(float());
  if (dtype == DType::f64) return use(double());
  fail_dtype(kernel, dtype, "f32 or f64");
}

}  // namespace convoy::CONVOY_GPU
