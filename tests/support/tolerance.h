// The one table of tolerances: (class of operation, dtype) to atol + rtol * |expected|, where sums
// of n terms have atol scaled by sqrt(n). Inputs of tests are of size 1. Results in bf16 are
// computed in float and rounded once, by 2^-8 of their size at most.
#pragma once

#include <string>
#include <vector>

#include "kernels/base/dtype.h"
#include "kernels/base/shape.h"

namespace convoy::testing {

enum class OpClass {
  exact,          ///< copies, indices, sums of small integers: the same bits
  elementwise,    ///< a few roundings
  function,       ///< exp, tanh, log
  product,        ///< convolution and linear, in float
  sum,            ///< sums in float, e.g. bias gradients
  double_sum,     ///< norms, in double whatever the dtype
  statistics,     ///< of batch norm: in double, but of bf16 in float
  normalisation,  ///< differences of sums, divided by a deviation
  optimizer,      ///< one step of a parameter
};

struct Tolerance {
  double atol = 0;
  double rtol = 0;
};

/// Tolerance for results of `dtype` that are sums of `terms` terms (1: no sum).
Tolerance tolerance(OpClass op_class, DType dtype, double terms = 1);

/// Empty if all of `actual` is within `tolerance` of `expected`, NaN where that is NaN; else the
/// largest error, where it is, and how many are out.
std::string difference(const std::vector<double>& actual, const std::vector<double>& expected,
                       const Shape& shape, Tolerance tolerance);

}  // namespace convoy::testing
