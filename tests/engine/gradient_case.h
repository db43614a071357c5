// One description of a differentiable function of some tensors, whose gradients are held against
// central differences in double on the reference backend.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "engine/tensor/tensor.h"

namespace convoy::testing {

/// Options of tensors on ref:0 in f64: where gradients are checked.
inline const TensorOptions kOracle{DType::f64, "ref:0"};

struct GradientCase {
  using Leaf = std::pair<std::string, Shape>;

  std::string name;
  std::vector<Leaf> leaves;  ///< values are signed_values("name/leaf")
  std::function<Tensor(const std::vector<Tensor>&)> function;
  /// Values of the first leaf at which there is no derivative: none of its values is close to one.
  std::vector<double> kinks = {};
};

/// Values of a leaf of a case.
std::vector<double> leaf_values(const GradientCase& given, std::size_t leaf);

/// Every gradient of the case: step 1e-6, tolerance 1e-7 of the largest gradient or 1.
void check_gradients(const GradientCase& given);

}  // namespace convoy::testing
