// bench data: the loader alone, as training uses it, with nothing behind it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "engine/train/settings.h"

namespace convoy {

struct DataBenchResult {
  double images_per_s = 0;  ///< of all epochs but the first, or of the only one
  std::int64_t images = 0;  ///< measured
  double seconds = 0;
  std::string decoder;  ///< what decodes JPEG
};

/// Loads `epochs` epochs of the training images of settings.data with settings.batch, image_size
/// and loader_threads. `progress(images, of)` is called after each batch.
DataBenchResult bench_data(const Settings& settings, std::int64_t epochs,
                           const std::function<void(std::int64_t, std::int64_t)>& progress);

}  // namespace convoy
