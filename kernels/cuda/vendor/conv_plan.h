// How cuDNN computes a convolution: descriptors and an algorithm, kept from call to call.
#pragma once

#include <compare>
#include <cstddef>
#include <tuple>

#include "kernels/cuda/vendor/descriptors.h"

namespace convoy::cuda::vendor {

enum class Pass : int { forward, input_gradient, weight_gradient };

/// What a plan depends on.
struct ConvKey {
  Pass pass;
  Conv2dShape shape;
  LayoutId x, w, y;
  DType dtype;
  bool tf32, deterministic;

  auto members() const {
    const Conv2dShape& s = shape;
    return std::tuple(pass, std::tuple(s.n, s.c, s.h, s.w, s.k, s.r, s.s),
                      std::tuple(s.stride_h, s.stride_w, s.padding_h, s.padding_w, s.dilation_h,
                                 s.dilation_w, s.groups),
                      x, w, y, dtype, tf32, deterministic);
  }
  friend bool operator<(const ConvKey& a, const ConvKey& b) { return a.members() < b.members(); }
};

struct ConvPlan {
  TensorDescriptor x, y;
  FilterDescriptor w;
  ConvolutionDescriptor convolution;
  int algorithm = 0;  ///< of the pass's own enumeration
  std::size_t workspace = 0;
};

struct VendorDevice;

/// The plan of `key`, made on the first call by cuDNN's own forecast, without timing: a choice by
/// time would change bits between runs. `usage` where cuDNN has no algorithm.
const ConvPlan& conv_plan(VendorDevice& device, const ConvKey& key);

}  // namespace convoy::cuda::vendor
