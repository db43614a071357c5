#include "engine/data/idx.h"

#include <unistd.h>

#include <array>
#include <utility>

#include "engine/data/decode_image.h"
#include "engine/data/fingerprint.h"
#include "engine/data/gunzip.h"
#include "engine/io/text.h"

namespace convoy {
namespace {

constexpr std::int64_t kImageMagic = 2051;
constexpr std::int64_t kLabelMagic = 2049;

const char* hint_of(std::int64_t magic) {
  if (magic == kImageMagic) return " (an image file)";
  if (magic == kLabelMagic) return " (a label file)";
  return magic >> 24 == '<' ? " (a web page?)" : "";
}

/// Reads the pieces of one idx file.
class IdxReader {
 public:
  IdxReader(const Bytes& bytes, const std::string& name)
      : content_(bytes, name), name_(printable(name)), file_bytes_(bytes.size()) {}

  std::int64_t number() {
    Bytes b = content_.read(4);
    if (b.size() < 4) CONVOY_FAIL(data, "{}: the header is cut short", name_);
    return std::int64_t{b[0]} << 24 | b[1] << 16 | b[2] << 8 | b[3];
  }

  void expect_magic(std::int64_t expected, const char* what) {
    std::int64_t magic = number();
    if (magic == expected) return;
    CONVOY_FAIL(data, "{}: magic number {}{}, {} expected for {}", name_, magic, hint_of(magic),
                expected, what);
  }

  /// All the rest: `count` items of `item_bytes` bytes.
  Bytes body(std::int64_t count, std::int64_t item_bytes) {
    std::int64_t wanted = 0;
    if (__builtin_mul_overflow(count, item_bytes, &wanted)) {
      CONVOY_FAIL(data, "{}: {} items of {} bytes do not fit", name_, count, item_bytes);
    }
    Bytes values = content_.read(wanted);
    if (static_cast<std::int64_t>(values.size()) < wanted) {
      CONVOY_FAIL(data, "{}: the header says {} items of {} bytes, the file holds {} ({} bytes)",
                  name_, count, item_bytes, static_cast<std::int64_t>(values.size()) / item_bytes,
                  values.size());
    }
    if (!content_.at_end()) {
      CONVOY_FAIL(data,
                  "{}: more than the {} items of {} bytes that the header says ({} file bytes)",
                  name_, count, item_bytes, file_bytes_);
    }
    return values;
  }

 private:
  ContentReader content_;
  std::string name_;
  std::size_t file_bytes_;
};

/// The file of `role` ("images", "labels") in `folder` under any of its usual names; plain before
/// gzipped.
std::string find_idx(const std::string& folder, const std::string& prefix, const std::string& role,
                     const std::string& type) {
  for (const char* ending : {"", ".gz"}) {
    for (const char* separator : {"-", "."}) {
      std::string path = folder + "/" + prefix + "-" + role + separator + type + ending;
      if (::access(path.c_str(), F_OK) == 0) return path;
    }
  }
  CONVOY_FAIL(data, "{}: no file {}-{}-{} there, plain or .gz", printable(folder), prefix, role,
              type);
}

class IdxDataset : public Dataset {
 public:
  IdxDataset(IdxFile images, std::string images_path, IdxFile labels, std::string labels_path,
             std::vector<std::string> class_names)
      : images_(std::move(images)),
        labels_(std::move(labels)),
        images_path_(std::move(images_path)),
        labels_path_(std::move(labels_path)),
        class_names_(std::move(class_names)) {}

  std::int64_t size() const override { return images_.count; }
  const std::vector<std::string>& class_names() const override { return class_names_; }
  std::int64_t label(std::int64_t i) const override { return labels_.values[i]; }
  std::string image_path_or_name(std::int64_t i) const override {
    return fmt::format("{} record {}", images_path_, i);
  }
  std::string label_place(std::int64_t i) const override {
    return fmt::format("{} record {}", labels_path_, i);
  }
  Normalisation normalisation() const override { return kFashionNormalisation; }
  AugmentRule augment_rule() const override { return AugmentRule::flip; }

  Image read(std::int64_t i) const override {
    std::int64_t bytes = images_.rows * images_.columns;
    Image image{static_cast<int>(images_.columns), static_cast<int>(images_.rows), {}, false};
    image.pixels.resize(static_cast<std::size_t>(bytes) * kChannels);
    const std::uint8_t* in = images_.values.data() + i * bytes;
    for (std::int64_t p = 0; p < bytes; ++p) {
      for (int c = 0; c < kChannels; ++c) image.pixels[p * kChannels + c] = in[p];
    }
    return image;
  }

  std::string fingerprint() const override {
    Fingerprint hash;
    hash.add_text("idx");
    for (std::int64_t n : {images_.count, images_.rows, images_.columns}) hash.add_number(n);
    hash.add_bytes(images_.values);
    hash.add_bytes(labels_.values);
    return hash.hex();
  }

 private:
  IdxFile images_;
  IdxFile labels_;
  std::string images_path_;
  std::string labels_path_;
  std::vector<std::string> class_names_;
};

}  // namespace

IdxFile parse_idx_images(const Bytes& bytes, const std::string& name, std::int64_t max_pixels) {
  IdxReader reader(bytes, name);
  reader.expect_magic(kImageMagic, "idx images");
  IdxFile file;
  file.count = reader.number();
  file.rows = reader.number();
  file.columns = reader.number();
  if (file.count == 0) CONVOY_FAIL(data, "{}: 0 images", printable(name));
  try {
    check_sides(file.columns, file.rows, max_pixels);
  } catch (const Error& error) {
    throw Error(error.kind(), printable(name) + ": " + error.text(), error.place());
  }
  file.values = reader.body(file.count, file.rows * file.columns);
  return file;
}

IdxFile parse_idx_labels(const Bytes& bytes, const std::string& name) {
  IdxReader reader(bytes, name);
  reader.expect_magic(kLabelMagic, "idx labels");
  IdxFile file;
  file.count = reader.number();
  file.values = reader.body(file.count, 1);
  return file;
}

std::vector<std::string> fashion_class_names(std::int64_t classes) {
  std::vector<std::string> names = {"T-shirt/top", "Trouser", "Pullover", "Dress", "Coat",
                                    "Sandal",      "Shirt",   "Sneaker",  "Bag",   "Ankle boot"};
  if (classes <= std::ssize(names)) return names;
  names.clear();
  for (std::int64_t i = 0; i < classes; ++i) names.push_back(std::to_string(i));
  return names;
}

std::shared_ptr<const Dataset> open_idx(const std::string& folder, const std::string& prefix,
                                        std::int64_t max_pixels, std::int64_t classes) {
  std::string images_path = find_idx(folder, prefix, "images", "idx3-ubyte");
  std::string labels_path = find_idx(folder, prefix, "labels", "idx1-ubyte");
  IdxFile images = parse_idx_images(read_file(images_path), images_path, max_pixels);
  IdxFile labels = parse_idx_labels(read_file(labels_path), labels_path);
  if (images.count != labels.count) {
    CONVOY_FAIL(data, "{}: {} images, but {} labels in {}", printable(images_path), images.count,
                labels.count, printable(labels_path));
  }
  return std::make_shared<IdxDataset>(std::move(images), images_path, std::move(labels),
                                      labels_path, fashion_class_names(classes));
}

}  // namespace convoy
