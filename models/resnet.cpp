// ResNet-18 to -152. A block is a run of layers; its last batch norm adds the block's input.
//
//     bottleneck: x -> conv1 1x1 -> bn1 -> conv2 3x3 -> bn2 -> conv3 1x1 -> bn3 + x -> ReLU
//     basic:      x -> conv1 3x3 -> bn1 -> conv2 3x3 -> bn2 + x -> ReLU
#include "engine/nn/layers.h"
#include "kernels/base/error.h"
#include "models/networks.h"

namespace convoy {
namespace {

struct Depths {
  const char* name;
  std::int64_t blocks[4];
  bool bottleneck;
};

constexpr Depths kDepths[] = {{"resnet18", {2, 2, 2, 2}, false},
                              {"resnet34", {3, 4, 6, 3}, false},
                              {"resnet50", {3, 4, 6, 3}, true},
                              {"resnet101", {3, 4, 23, 3}, true},
                              {"resnet152", {3, 8, 36, 3}, true}};

const Depths& depths_of(const std::string& name) {
  for (const Depths& depths : kDepths) {
    if (name == depths.name) return depths;
  }
  CONVOY_FAIL(internal, "resnet: no depths for '{}'", name);
}

std::shared_ptr<Conv2d> conv(std::int64_t in, std::int64_t out, std::int64_t kernel,
                             std::int64_t stride) {
  const Conv2dOptions options{.stride = stride, .padding = kernel / 2};
  return std::make_shared<Conv2d>(in, out, kernel, options, false, Conv2dInit::normal_fan_out);
}

std::shared_ptr<BatchNorm2d> norm(std::int64_t channels, bool relu, bool residual = false) {
  return std::make_shared<BatchNorm2d>(channels, relu, residual);
}

// Appends one block and returns the number of its last layer.
int add_block(Network& network, const std::string& name, std::int64_t in, std::int64_t planes,
              std::int64_t stride, bool bottleneck) {
  const int input = static_cast<int>(network.layers().size()) - 1;
  const std::int64_t out = bottleneck ? planes * 4 : planes;
  int last;
  if (bottleneck) {
    network.add(name + ".conv1", conv(in, planes, 1, 1), {input});
    network.add(name + ".bn1", norm(planes, true));
    network.add(name + ".conv2", conv(planes, planes, 3, stride));
    network.add(name + ".bn2", norm(planes, true));
    last = network.add(name + ".conv3", conv(planes, out, 1, 1));
  } else {
    network.add(name + ".conv1", conv(in, planes, 3, stride), {input});
    network.add(name + ".bn1", norm(planes, true));
    last = network.add(name + ".conv2", conv(planes, planes, 3, 1));
  }
  int shortcut = input;
  if (stride != 1 || in != out) {
    network.add(name + ".downsample.0", conv(in, out, 1, stride), {input});
    shortcut = network.add(name + ".downsample.1", norm(out, false));
  }
  return network.add(name + (bottleneck ? ".bn3" : ".bn2"), norm(out, true, true),
                     {last, shortcut});
}

}  // namespace

std::shared_ptr<Network> make_resnet(const std::string& name, std::int64_t classes) {
  const Depths& depths = depths_of(name);
  auto network = std::make_shared<Network>(name, 3, false, classes);
  network->add("conv1", conv(3, 64, 7, 2));
  network->add("bn1", norm(64, true));
  network->add("maxpool", std::make_shared<MaxPool2d>(
                              Pool2dOptions{.kernel = 3, .stride = Pair(2), .padding = 1}));
  std::int64_t channels = 64;
  for (int stage = 0; stage < 4; ++stage) {
    const std::int64_t planes = std::int64_t{64} << stage;
    for (std::int64_t block = 0; block < depths.blocks[stage]; ++block) {
      add_block(*network, fmt::format("layer{}.{}", stage + 1, block), channels, planes,
                block == 0 && stage > 0 ? 2 : 1, depths.bottleneck);
      channels = depths.bottleneck ? planes * 4 : planes;
    }
  }
  network->add("avgpool", std::make_shared<GlobalAvgPool2d>());
  network->add("fc", std::make_shared<Linear>(channels, classes));
  return network;
}

}  // namespace convoy
