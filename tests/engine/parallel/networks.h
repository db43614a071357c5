// Small networks in double for comparisons with one device, and what training them leaves.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/nn/module.h"

namespace convoy::testing {

using Values = std::vector<double>;

/// A network with the shapes of its batches.
struct NetworkCase {
  std::string name;
  std::function<std::shared_ptr<Module>(const Device& device, std::uint64_t seed)> make;
  Shape image;       ///< of one image: (1, ...)
  std::int64_t out;  ///< numbers per row of the output

  /// Images first..first+count-1 of all, and what they are to become.
  Tensor images(std::int64_t first, std::int64_t count, const Device& device) const;
  Tensor targets(std::int64_t first, std::int64_t count, const Device& device) const;
};

/// Linear, the toy, and convolutions with frozen batch norms whose running values are no defaults.
const std::vector<NetworkCase>& network_cases();

/// Mean over all numbers of the batch; 0 where there are none.
Tensor mean_loss(const Tensor& y, const Tensor& target);

/// All values, or all gradients, one after the other.
Values values_of(const Module& module);
Values gradients_of(const Module& module);

/// Largest difference; infinite where sizes differ.
double distance(const Values& a, const Values& b);

/// What a training has left.
struct Trained {
  Values gradients;  ///< of the first step
  Values values;     ///< after the last one
};

/// Three steps of SGD; `step(number)` makes the gradients.
Trained train(Module& module, const std::function<void(int step)>& step);

/// The same on one device, over `images` images a step.
Trained train_alone(const NetworkCase& network, std::int64_t images, std::uint64_t seed);

}  // namespace convoy::testing
