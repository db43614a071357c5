#include "engine/data/cifar.h"

#include <unistd.h>

#include <utility>

#include "engine/data/fingerprint.h"
#include "engine/io/text.h"

namespace convoy {
namespace {

constexpr int kSide = 32;
constexpr std::int64_t kPlane = kSide * kSide;
constexpr std::int64_t kRecord = 1 + 3 * kPlane;
constexpr int kClasses = 10;
constexpr int kTrainFiles = 5;

struct CifarFile {
  std::string path;
  Bytes bytes;
  std::int64_t first;  // its first sample
  std::int64_t count;
};

bool exists(const std::string& path) {
  return ::access(path.c_str(), F_OK) == 0;
}

class CifarDataset : public Dataset {
 public:
  explicit CifarDataset(std::vector<CifarFile> files, std::vector<std::string> notes)
      : files_(std::move(files)), notes_(std::move(notes)) {}

  std::int64_t size() const override { return files_.back().first + files_.back().count; }
  const std::vector<std::string>& class_names() const override { return class_names_; }
  std::int64_t label(std::int64_t i) const override { return record(i)[0]; }
  std::string image_path_or_name(std::int64_t i) const override {
    const CifarFile& file = file_of(i);
    return fmt::format("{} record {}", file.path, i - file.first);
  }
  Normalisation normalisation() const override { return kCifarNormalisation; }
  AugmentRule augment_rule() const override { return AugmentRule::pad_crop_flip; }

  Image read(std::int64_t i) const override {
    Image image{kSide, kSide, Bytes(kChannels * kPlane), false};
    const std::uint8_t* planes = record(i) + 1;
    for (int c = 0; c < kChannels; ++c) {
      for (std::int64_t p = 0; p < kPlane; ++p) {
        image.pixels[p * kChannels + c] = planes[c * kPlane + p];
      }
    }
    return image;
  }

  std::vector<std::string> notes() const override { return notes_; }

  std::string fingerprint() const override {
    Fingerprint hash;
    hash.add_text("cifar10");
    for (const CifarFile& file : files_) hash.add_bytes(file.bytes);
    return hash.hex();
  }

 private:
  const CifarFile& file_of(std::int64_t i) const {
    std::size_t f = 0;
    while (i >= files_[f].first + files_[f].count) ++f;
    return files_[f];
  }
  const std::uint8_t* record(std::int64_t i) const {
    const CifarFile& file = file_of(i);
    return file.bytes.data() + (i - file.first) * kRecord;
  }

  std::vector<CifarFile> files_;
  std::vector<std::string> notes_;
  std::vector<std::string> class_names_ = {"airplane", "automobile", "bird",  "cat",  "deer",
                                           "dog",      "frog",       "horse", "ship", "truck"};
};

std::vector<std::string> file_names(bool train) {
  if (!train) return {"test_batch.bin"};
  std::vector<std::string> names;
  for (int i = 1; i <= kTrainFiles; ++i) names.push_back(fmt::format("data_batch_{}.bin", i));
  return names;
}

}  // namespace

std::int64_t check_cifar(const Bytes& bytes, const std::string& name) {
  auto size = static_cast<std::int64_t>(bytes.size());
  if (size == 0 || size % kRecord != 0) {
    CONVOY_FAIL(data, "{}: {} bytes, a multiple of {} (one record) expected, remainder {}",
                printable(name), size, kRecord, size % kRecord);
  }
  for (std::int64_t i = 0; i < size / kRecord; ++i) {
    int label = bytes[i * kRecord];
    if (label >= kClasses) {
      CONVOY_FAIL(data, "{} record {}: label {}, 0..{} expected", printable(name), i, label,
                  kClasses - 1);
    }
  }
  return size / kRecord;
}

std::shared_ptr<const Dataset> open_cifar(const std::string& folder, bool train) {
  std::string inner = folder + "/cifar-10-batches-bin";
  std::string place = exists(inner) ? inner : folder;
  std::vector<CifarFile> files;
  std::int64_t count = 0;
  std::vector<std::string> names = file_names(train);
  for (const std::string& name : names) {
    CifarFile file{place + "/" + name, {}, count, 0};
    if (!exists(file.path)) continue;
    file.bytes = read_file(file.path);
    file.count = check_cifar(file.bytes, file.path);
    count += file.count;
    files.push_back(std::move(file));
  }
  if (files.empty()) {
    CONVOY_FAIL(data, "{}: no {} (CIFAR-10, binary version)", printable(place), names.front());
  }
  std::vector<std::string> notes;
  if (files.size() < names.size()) {
    notes.push_back(fmt::format("{} of {} data_batch files are there", files.size(), names.size()));
  }
  return std::make_shared<CifarDataset>(std::move(files), std::move(notes));
}

}  // namespace convoy
