#include <algorithm>

#include "kernels/cuda/pool2d_kernels.h"

namespace convoy::CONVOY_GPU {

dim3 pool_grid(std::int64_t places, std::int64_t channels, int width, std::int64_t images) {
  constexpr std::int64_t kMost = 65535;  // of a grid in y and z
  const std::int64_t items = places * ((channels + width - 1) / width);
  return {static_cast<unsigned>((items + kPoolThreads - 1) / kPoolThreads),
          static_cast<unsigned>(std::min(images, kMost)),
          static_cast<unsigned>((images + kMost - 1) / kMost)};
}

}  // namespace convoy::CONVOY_GPU
