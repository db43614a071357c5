// The 23 shapes of ResNet-50's convolutions.
#pragma once

#include <vector>

#include "kernels/shapes.h"

namespace convoy::testing {

/// Of `n` images, where an extent of 224 becomes `size` and the others follow in proportion (at
/// least 1). Stride 2 stands in the 3x3, padding keeps extents.
inline std::vector<Conv2dShape> resnet_shapes(std::int64_t n, std::int64_t size) {
  struct Row {
    std::int64_t extent, c, k, filter, stride;
  };
  constexpr Row kRows[] = {
      {224, 3, 64, 7, 2},     {56, 64, 64, 1, 1},    {56, 64, 64, 3, 1},    {56, 64, 256, 1, 1},
      {56, 256, 64, 1, 1},    {56, 256, 128, 1, 1},  {56, 128, 128, 3, 2},  {28, 128, 512, 1, 1},
      {56, 256, 512, 1, 2},   {28, 512, 128, 1, 1},  {28, 128, 128, 3, 1},  {28, 512, 256, 1, 1},
      {28, 256, 256, 3, 2},   {14, 256, 1024, 1, 1}, {28, 512, 1024, 1, 2}, {14, 1024, 256, 1, 1},
      {14, 256, 256, 3, 1},   {14, 1024, 512, 1, 1}, {14, 512, 512, 3, 2},  {7, 512, 2048, 1, 1},
      {14, 1024, 2048, 1, 2}, {7, 2048, 512, 1, 1},  {7, 512, 512, 3, 1}};
  std::vector<Conv2dShape> shapes;
  for (const Row& row : kRows) {
    const std::int64_t extent = std::max<std::int64_t>(row.extent * size / 224, 1);
    const std::int64_t padding = (row.filter - 1) / 2;
    shapes.push_back({n, row.c, extent, extent, row.k, row.filter, row.filter, row.stride,
                      row.stride, padding, padding});
  }
  return shapes;
}

}  // namespace convoy::testing
