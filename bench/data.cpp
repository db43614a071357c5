#include "bench/data.h"

#include <chrono>

#include "engine/data/decode_jpeg.h"
#include "engine/train/evaluate.h"
#include "kernels/base/error.h"

namespace convoy {

DataBenchResult bench_data(const Settings& settings, std::int64_t epochs,
                           const std::function<void(std::int64_t, std::int64_t)>& progress) {
  using Clock = std::chrono::steady_clock;
  CONVOY_CHECK(epochs >= 1, "bench data: {} epochs, expected at least 1", epochs);
  const DataPair data = open_images(settings);
  Loader loader(data.train, loader_options(settings, image_size_of(settings), true));
  DataBenchResult result;
  result.decoder = jpeg_version();
  for (std::int64_t epoch = 1; epoch <= epochs; ++epoch) {
    const bool measured = epochs == 1 || epoch > 1;  // the first one fills the page cache
    const Clock::time_point start = Clock::now();
    loader.start_epoch(epoch);
    std::int64_t images = 0;
    while (std::optional<HostBatch> batch = loader.next()) {
      images += batch->images;
      progress(images, data.train->size());
      loader.recycle(std::move(*batch));
    }
    if (!measured) continue;
    result.images += images;
    result.seconds += std::chrono::duration<double>(Clock::now() - start).count();
  }
  result.images_per_s = static_cast<double>(result.images) / result.seconds;
  return result;
}

}  // namespace convoy
