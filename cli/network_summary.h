// What a network is made of: its layers with output shapes, parameters and multiply-adds.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/nn/network.h"

namespace convoy::cli {

struct LayerSummary {
  std::string name;
  std::string text;  ///< "Conv2d(3, 64, 7x7, stride 2)"
  std::vector<std::int64_t> output;
  std::int64_t parameters = 0;
  std::int64_t multiply_adds = 0;  ///< of convolutions and matrix products, for one image
};

struct NetworkSummary {
  std::string model;
  std::int64_t image_size = 0;  ///< 0 for networks that take rows
  std::vector<LayerSummary> layers;
  std::int64_t parameters = 0;
  std::int64_t buffers = 0;  ///< values of running statistics
  std::int64_t multiply_adds = 0;
};

/// For one image of `image_size`, or one row. Nothing is run.
NetworkSummary summarize(const Network& network, std::int64_t image_size);

}  // namespace convoy::cli
