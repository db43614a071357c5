// Folders of images: DIR/train/CLASS/... and DIR/val/CLASS/... (or validation). Classes are the
// folders of train in byte order.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/data/dataset.h"

namespace convoy {

/// Both sets of a folder. `validation` is empty where there is no such folder.
struct FolderPair {
  std::shared_ptr<const Dataset> train;
  std::shared_ptr<const Dataset> validation;
  std::vector<std::string> notes;
};

/// Opens `folder`; `data` errors name the folder at fault and, where it helps, the expected layout.
FolderPair open_image_folder(const std::string& folder, std::int64_t max_pixels);

}  // namespace convoy
