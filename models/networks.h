// The makers behind models.cpp's list, one file each.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "engine/nn/network.h"

namespace convoy {

/// He et al. 2015 (arXiv:1512.03385) as torchvision builds it: the stride of a bottleneck sits on
/// its 3x3 convolution ("v1.5"). Images (N, 3, H, W) to logits (N, classes).
std::shared_ptr<Network> make_resnet(const std::string& name, std::int64_t classes);

/// Linear(10, 10), ReLU, Linear(10, 5): net1, relu, net2.
std::shared_ptr<Network> make_toy();

/// Linear(10, 1): linear.
std::shared_ptr<Network> make_line();

}  // namespace convoy
