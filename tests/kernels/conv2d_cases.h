// Convolutions that tests run over, as cases of the three kernels.
#pragma once

#include <vector>

#include "tests/support/op_case.h"

namespace convoy::testing {

/// ResNet's own shapes, then odd ones: stride, padding, dilation, groups, rectangles, single
/// places.
std::vector<Conv2dShape> conv2d_shapes();

/// "conv2d x 2x3x32x32 w 64x3x7x7 ..."
std::string to_string(const Conv2dShape& shape);

/// Terms in the longest sums of the three kernels.
double forward_terms(const Conv2dShape& shape);
double input_gradient_terms(const Conv2dShape& shape);
double weight_gradient_terms(const Conv2dShape& shape);

OpCase conv2d_forward_case(const Conv2dShape& shape, bool bias);
OpCase conv2d_input_gradient_case(const Conv2dShape& shape);
OpCase conv2d_weight_gradient_case(const Conv2dShape& shape, bool bias);

}  // namespace convoy::testing
