#include "engine/data/image_folder.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "engine/data/decode_image.h"
#include "engine/data/fingerprint.h"
#include "engine/data/scan_folder.h"
#include "engine/io/text.h"

namespace convoy {
namespace {

constexpr const char* kLayout =
    "expected layout: DIR/train/CLASS/IMAGE and DIR/val/CLASS/IMAGE, one folder for each class";

/// An image and the number of its class.
struct Entry {
  FoundImage image;
  std::int64_t label;
};

class FolderDataset : public Dataset {
 public:
  FolderDataset(std::string root, std::vector<Entry> entries, std::vector<std::string> class_names,
                std::int64_t max_pixels)
      : root_(std::move(root)),
        entries_(std::move(entries)),
        class_names_(std::move(class_names)),
        max_pixels_(max_pixels),
        rotated_(entries_.size()) {}

  std::int64_t size() const override { return std::ssize(entries_); }
  const std::vector<std::string>& class_names() const override { return class_names_; }
  std::int64_t label(std::int64_t i) const override { return entries_[i].label; }
  std::string image_path_or_name(std::int64_t i) const override { return path(i); }
  ResizeRule resize_rule() const override { return ResizeRule::centre_crop; }
  AugmentRule augment_rule() const override { return AugmentRule::resized_crop; }

  Image read(std::int64_t i) const override {
    Image image = read_image_file(path(i), max_pixels_);
    if (image.rotated) rotated_[i] = true;
    return image;
  }

  ImagePart read_part(std::int64_t i, const PartWish& wish) const override {
    ImagePart part = read_image_file_part(path(i), max_pixels_, wish);
    if (part.image.rotated) rotated_[i] = true;
    return part;
  }

  std::vector<std::int64_t> rotated_images() const override {
    std::vector<std::int64_t> images;
    for (std::size_t i = 0; i < rotated_.size(); ++i) {
      if (rotated_[i]) images.push_back(static_cast<std::int64_t>(i));
    }
    return images;
  }

  std::string fingerprint() const override {
    Fingerprint hash;
    hash.add_text("folder");
    for (const std::string& name : class_names_) hash.add_text(name);
    for (const Entry& entry : entries_) {
      hash.add_text(entry.image.path);
      hash.add_number(entry.image.bytes);
      hash.add_number(entry.label);
    }
    return hash.hex();
  }

 private:
  std::string path(std::int64_t i) const { return root_ + "/" + entries_[i].image.path; }

  std::string root_;
  std::vector<Entry> entries_;
  std::vector<std::string> class_names_;
  std::int64_t max_pixels_;
  // What reading has shown; several threads read.
  mutable std::vector<std::atomic<bool>> rotated_;
};

void check_layout(const FoundFolder& found, const std::string& folder) {
  if (!found.loose_images.empty()) {
    CONVOY_FAIL(data, "{}: {} image{} outside of any class folder ({}, ...); {}", printable(folder),
                found.loose_images.size(), found.loose_images.size() == 1 ? "" : "s",
                printable(found.loose_images.front()), kLayout);
  }
  if (found.classes.empty()) {
    CONVOY_FAIL(data, "{}: no class folders; {}", printable(folder), kLayout);
  }
}

std::vector<std::string> names_of(const FoundFolder& train, const std::string& folder) {
  std::vector<std::string> names;
  for (const FoundClass& c : train.classes) {
    if (c.images.empty()) {
      CONVOY_FAIL(data, "{}/{}: class folder without an image", printable(folder),
                  printable(c.name));
    }
    names.push_back(c.name);
  }
  return names;
}

std::vector<Entry> entries_of(FoundFolder& found, const std::string& folder,
                              const std::vector<std::string>& class_names) {
  std::vector<Entry> entries;
  for (FoundClass& c : found.classes) {
    auto place = std::lower_bound(class_names.begin(), class_names.end(), c.name);
    if (place == class_names.end() || *place != c.name) {
      CONVOY_FAIL(data, "{}/{}: no such class in the training set", printable(folder),
                  printable(c.name));
    }
    for (FoundImage& image : c.images) {
      entries.push_back({std::move(image), place - class_names.begin()});
    }
  }
  if (entries.empty()) CONVOY_FAIL(data, "{}: no images; {}", printable(folder), kLayout);
  return entries;
}

/// One line if training classes have no image in the validation folder.
void note_absent_classes(const FoundFolder& found, const std::string& folder,
                         const std::vector<std::string>& class_names,
                         std::vector<std::string>& notes) {
  std::vector<std::string> absent;
  for (const std::string& name : class_names) {
    auto there = [&](const FoundClass& c) { return c.name == name && !c.images.empty(); };
    if (std::none_of(found.classes.begin(), found.classes.end(), there)) absent.push_back(name);
  }
  if (absent.empty()) return;
  notes.push_back(fmt::format("warning: {}: no images of {} of the {} classes ({}{})",
                              printable(folder), absent.size(), class_names.size(),
                              printable(absent.front()), absent.size() > 1 ? ", ..." : ""));
}

void note_counts(std::int64_t ignored, std::int64_t loops, std::vector<std::string>& notes) {
  if (ignored > 0) {
    notes.push_back(
        fmt::format("ignored {} hidden or foreign entr{}", ignored, ignored == 1 ? "y" : "ies"));
  }
  if (loops > 0) {
    notes.push_back(
        fmt::format("cut {} link{} back to a folder above", loops, loops == 1 ? "" : "s"));
  }
}

std::string validation_folder(const std::string& folder) {
  for (const char* name : {"/val", "/validation"}) {
    if (is_folder(folder + name)) return folder + name;
  }
  return {};
}

}  // namespace

FolderPair open_image_folder(const std::string& folder, std::int64_t max_pixels) {
  if (!is_folder(folder)) CONVOY_FAIL(data, "{}: no such folder; {}", printable(folder), kLayout);
  std::string train_root = folder + "/train";
  if (!is_folder(train_root)) {
    CONVOY_FAIL(data, "{}: no folder train in it; {}", printable(folder), kLayout);
  }
  FolderPair pair;
  FoundFolder train = scan_folder(train_root);
  check_layout(train, train_root);
  std::vector<std::string> names = names_of(train, train_root);
  std::int64_t ignored = count_ignored(folder) + train.ignored;
  std::int64_t loops = train.loops;
  pair.train = std::make_shared<FolderDataset>(train_root, entries_of(train, train_root, names),
                                               names, max_pixels);
  std::string val_root = validation_folder(folder);
  if (val_root.empty()) {
    pair.notes.push_back(
        fmt::format("{}: no folder val or validation, nothing to evaluate on", printable(folder)));
  } else {
    FoundFolder val = scan_folder(val_root);
    check_layout(val, val_root);
    note_absent_classes(val, val_root, names, pair.notes);
    pair.validation = std::make_shared<FolderDataset>(val_root, entries_of(val, val_root, names),
                                                      names, max_pixels);
    ignored += val.ignored;
    loops += val.loops;
  }
  note_counts(ignored, loops, pair.notes);
  return pair;
}

}  // namespace convoy
