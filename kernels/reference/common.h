// What the kernels of the reference backend share: choosing the element type and checking operands.
// Checks run on the host, when the kernel is called; the work runs later, on the stream's thread.
#pragma once

#include <initializer_list>

#include "kernels/base/buffer.h"
#include "kernels/base/error.h"
#include "kernels/base/host_stream.h"

namespace convoy::reference {

/// The dtype that all given operands share; operands left out are passed over. `usage` where two
/// differ, `internal` where one is not kPlain.
DType common_dtype(const char* kernel, std::initializer_list<ConstBuffer> operands);

/// `internal` unless `buffer` is kPlain and of `dtype`.
void check_is(const char* kernel, const char* operand, ConstBuffer buffer, DType dtype);

/// `usage`: `kernel` has no code for `dtype`.
[[noreturn]] void fail_dtype(const char* kernel, DType dtype);

/// Calls `use(T())` with float or double, as `dtype` says; `usage` on any other.
template <class Use>
void with_type(const char* kernel, DType dtype, Use use) {
  if (dtype == DType::f32) return use(float());
  if (dtype == DType::f64) return use(double());
  fail_dtype(kernel, dtype);
}

/// Element `i` of a buffer that is f32 or f64.
inline double load(ConstBuffer x, std::int64_t i) {
  return x.dtype == DType::f64 ? x.as<double>()[i] : static_cast<double>(x.as<float>()[i]);
}

/// Sets element `i` of a buffer that is f32 or f64.
inline void store(Buffer x, std::int64_t i, double value) {
  if (x.dtype == DType::f64) {
    x.as<double>()[i] = value;
  } else {
    x.as<float>()[i] = static_cast<float>(value);
  }
}

}  // namespace convoy::reference
