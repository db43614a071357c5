// Types that belong together: of tensors, of the sums over them, and of parameters' gradients.
#pragma once

#include <initializer_list>

#include "kernels/base/buffer.h"
#include "kernels/cuda/platform.h"

namespace convoy::CONVOY_GPU {

/// Products of T are summed in Sum; biases and gradients of parameters are of type Parameter.
template <class T>
struct Precision {
  using Sum = float;
  using Parameter = float;
};
template <>
struct Precision<double> {
  using Sum = double;
  using Parameter = double;
};

/// The one dtype of `tensors`; those left out count for none. Their layouts may
/// differ. `usage` if their dtypes do, or are no floating ones.
DType dtype_of_all(const char* kernel, std::initializer_list<ConstBuffer> tensors);

/// `internal` unless `parameter` (may be left out) has the type that goes with tensors of `dtype`.
void require_parameter(const char* kernel, DType dtype, ConstBuffer parameter);

}  // namespace convoy::CONVOY_GPU
