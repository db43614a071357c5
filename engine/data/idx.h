// MNIST's idx files, plain or gzipped by content: images (magic 2051) of one byte a pixel and
// labels (magic 2049), big-endian numbers.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/data/dataset.h"
#include "engine/data/file.h"

namespace convoy {

/// What an idx file holds. Images: count x rows x columns bytes; labels: rows = columns = 1.
struct IdxFile {
  std::int64_t count = 0;
  std::int64_t rows = 1;
  std::int64_t columns = 1;
  Bytes values;
};

/// Parses an image file held in memory; `name` goes into errors.
IdxFile parse_idx_images(const Bytes& bytes, const std::string& name, std::int64_t max_pixels);

/// Parses a label file held in memory.
IdxFile parse_idx_labels(const Bytes& bytes, const std::string& name);

/// Fashion-MNIST's normalisation: grey, the same for all channels.
inline constexpr Normalisation kFashionNormalisation = {{0.2860f, 0.2860f, 0.2860f},
                                                        {0.3530f, 0.3530f, 0.3530f}};

/// The names of Fashion-MNIST's ten classes; for more classes their numbers.
std::vector<std::string> fashion_class_names(std::int64_t classes);

/// The set in `folder` whose files start with `prefix` ("train" or "t10k"):
/// PREFIX-images-idx3-ubyte and PREFIX-labels-idx1-ubyte, also with ".idx", also with ".gz".
std::shared_ptr<const Dataset> open_idx(const std::string& folder, const std::string& prefix,
                                        std::int64_t max_pixels, std::int64_t classes);

}  // namespace convoy
