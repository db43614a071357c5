#include "engine/data/open_dataset.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "engine/data/cifar.h"
#include "engine/data/fingerprint.h"
#include "engine/data/idx.h"
#include "engine/data/image_folder.h"
#include "engine/data/scan_folder.h"
#include "engine/data/synthetic.h"
#include "engine/io/text.h"

namespace convoy {
namespace {

constexpr const char* kForms =
    "fashion-mnist[:DIR], cifar10:DIR, folder:DIR, DIR or synthetic[:N] expected";
constexpr const char* kFashionFolder = "/usr/share/datasets/fashion-mnist";
constexpr const char* kFashionPackage = "dataset-fashion-mnist";
constexpr std::int64_t kSyntheticCount = 1000;
constexpr std::int64_t kSyntheticClasses = 10;
constexpr std::int64_t kMostSynthetic = std::int64_t{1} << 40;

std::int64_t parse_count(const std::string& text, const std::string& digits) {
  std::int64_t count = 0;
  const char* end = digits.data() + digits.size();
  auto [stop, error] = std::from_chars(digits.data(), end, count);
  CONVOY_CHECK(error == std::errc() && stop == end && count >= 1 && count <= kMostSynthetic,
               "--data {}: \"{}\" is no number of samples, 1 to {} expected", printable(text),
               printable(digits), kMostSynthetic);
  return count;
}

/// A text without a known kind in front: a path, unless it looks like a misspelt kind.
DataSpec bare_path(const std::string& text) {
  std::size_t slash = text.find('/');
  bool path = text.starts_with('.') || (slash != std::string::npos && text.find(':') > slash);
  CONVOY_CHECK(path || is_folder(text), "--data \"{}\": neither a folder nor a known kind; {}",
               printable(text), kForms);
  return {text, DataKind::folder, text, 0};
}

DataPair open_fashion(const DataSpec& spec, const DataOptions& options) {
  if (!is_folder(spec.folder)) {
    CONVOY_FAIL(data, "{}: no such folder; install the Debian package {} or give fashion-mnist:DIR",
                printable(spec.folder), kFashionPackage);
  }
  DataPair pair;
  pair.train = open_idx(spec.folder, "train", options.max_pixels, options.classes);
  pair.validation = open_idx(spec.folder, "t10k", options.max_pixels, options.classes);
  return pair;
}

DataPair open_cifar10(const DataSpec& spec) {
  if (!is_folder(spec.folder)) CONVOY_FAIL(data, "{}: no such folder", printable(spec.folder));
  return {open_cifar(spec.folder, true), open_cifar(spec.folder, false), 0, {}};
}

DataPair open_folder(const DataSpec& spec, const DataOptions& options) {
  FolderPair folder = open_image_folder(spec.folder, options.max_pixels);
  return {folder.train, folder.validation, 0, std::move(folder.notes)};
}

DataPair open_synthetic(const DataSpec& spec, const DataOptions& options) {
  SyntheticOptions train{options.seed, 0, spec.count};
  SyntheticOptions validation{options.seed, spec.count, std::max<std::int64_t>(1, spec.count / 10)};
  if (options.samples == SampleKind::rows) {
    return {synthetic_rows(train, options.features, options.targets),
            synthetic_rows(validation, options.features, options.targets),
            0,
            {}};
  }
  std::int64_t classes = options.classes > 0 ? options.classes : kSyntheticClasses;
  return {synthetic_images(train, options.image_size, classes),
          synthetic_images(validation, options.image_size, classes),
          0,
          {}};
}

DataPair open_kind(const DataSpec& spec, const DataOptions& options) {
  switch (spec.kind) {
    case DataKind::fashion_mnist:
      return open_fashion(spec, options);
    case DataKind::cifar10:
      return open_cifar10(spec);
    case DataKind::folder:
      return open_folder(spec, options);
    case DataKind::synthetic:
      return open_synthetic(spec, options);
  }
  CONVOY_FAIL(internal, "open_data: unknown kind of data");
}

void check_classes(DataPair& pair, std::int64_t asked) {
  std::int64_t there = std::ssize(pair.train->class_names());
  pair.classes = asked > 0 ? asked : there;
  check_labels(*pair.train, pair.classes);
  if (pair.validation) check_labels(*pair.validation, pair.classes);
  if (pair.classes > there) {
    pair.notes.push_back(
        fmt::format("{} classes asked for, the data have {}", pair.classes, there));
  }
}

void apply_limit(DataPair& pair, std::int64_t limit) {
  if (limit > pair.train->size()) {
    pair.notes.push_back(
        fmt::format("--limit {}: the training set has only {}", limit, pair.train->size()));
  }
  pair.train = first_samples(pair.train, limit);
}

void add_notes(const std::shared_ptr<const Dataset>& dataset, std::vector<std::string>& notes) {
  if (!dataset) return;
  for (std::string& note : dataset->notes()) notes.push_back(std::move(note));
}

}  // namespace

DataSpec parse_data_spec(const std::string& text) {
  std::size_t colon = text.find(':');
  std::string kind = text.substr(0, colon);
  std::string rest = colon == std::string::npos ? "" : text.substr(colon + 1);
  if (kind == "fashion-mnist") {
    return {text, DataKind::fashion_mnist, rest.empty() ? kFashionFolder : rest, 0};
  }
  if (kind == "cifar10" || kind == "folder") {
    CONVOY_CHECK(!rest.empty(), "--data {}: a folder is missing, {}:DIR expected", printable(text),
                 kind);
    return {text, kind == "folder" ? DataKind::folder : DataKind::cifar10, rest, 0};
  }
  if (kind == "synthetic") {
    return {text, DataKind::synthetic, "",
            colon == std::string::npos ? kSyntheticCount : parse_count(text, rest)};
  }
  return bare_path(text);
}

std::string DataPair::fingerprint() const {
  Fingerprint hash;
  hash.add_text(train->fingerprint());
  hash.add_text(validation ? validation->fingerprint() : "");
  return hash.hex();
}

DataPair open_data(const DataSpec& spec, const DataOptions& options) {
  CONVOY_CHECK(options.samples == SampleKind::images || spec.kind == DataKind::synthetic,
               "--data {}: holds images, but the network reads rows; synthetic[:N] expected",
               printable(spec.text));
  CONVOY_CHECK(options.classes >= 0, "--classes {}: at least 1 expected", options.classes);
  DataPair pair = open_kind(spec, options);
  if (options.samples == SampleKind::images) check_classes(pair, options.classes);
  if (options.limit) apply_limit(pair, *options.limit);
  add_notes(pair.train, pair.notes);
  add_notes(pair.validation, pair.notes);
  return pair;
}

}  // namespace convoy
