// From `--data TEXT` to a training and a validation set.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/data/dataset.h"
#include "engine/data/decode_image.h"

namespace convoy {

enum class DataKind { fashion_mnist, cifar10, folder, synthetic };

/// A parsed `--data`: what it is, where it lies, how many samples are made up.
struct DataSpec {
  std::string text;
  DataKind kind = DataKind::fashion_mnist;
  std::string folder;
  std::int64_t count = 0;
};

/// Parses `fashion-mnist[:DIR] | cifar10:DIR | folder:DIR | DIR | synthetic[:N]`; a bare path is a
/// folder. `usage` for anything else.
DataSpec parse_data_spec(const std::string& text);

struct DataOptions {
  std::optional<std::int64_t> limit;  // first N training samples
  std::int64_t max_pixels = kDefaultMaxPixels;
  std::int64_t classes = 0;  // 0: as many as the data have
  std::uint64_t seed = 0;    // of synthetic data
  int image_size = 32;       // of synthetic images
  SampleKind samples = SampleKind::images;
  std::int64_t features = 0;  // of rows
  std::int64_t targets = 0;
};

/// Both sets, their labels checked. `validation` is empty where a folder has none.
struct DataPair {
  std::shared_ptr<const Dataset> train;
  std::shared_ptr<const Dataset> validation;
  std::int64_t classes = 0;
  std::vector<std::string> notes;  // to print, those of the sets included

  /// XXH3-128 of both sets' names, sizes and labels.
  std::string fingerprint() const;
};

/// Opens the data: sizes, counts and every label are checked before it returns.
DataPair open_data(const DataSpec& spec, const DataOptions& options);

}  // namespace convoy
