// Finds the images of a folder of classes: ROOT/CLASS/.../image. Names are bytes, in the order of
// unsigned bytes; hidden and foreign entries are passed over and counted; links are followed once.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace convoy {

/// One image file, its path below the root, and the size of the file.
struct FoundImage {
  std::string path;
  std::int64_t bytes = 0;
};

/// One class folder with its images, sorted.
struct FoundClass {
  std::string name;
  std::vector<FoundImage> images;
};

/// What a root holds.
struct FoundFolder {
  std::vector<FoundClass> classes;        // sorted by name
  std::vector<std::string> loose_images;  // images outside of any class folder
  std::int64_t ignored = 0;               // hidden or foreign entries
  std::int64_t loops = 0;                 // links back to a folder on the way down
};

/// Scans `root`. Only files that are not named like images are opened, to see whether they are
/// some.
FoundFolder scan_folder(const std::string& root);

/// Hidden or foreign files and hidden folders directly in `folder`, not looking further down.
std::int64_t count_ignored(const std::string& folder);

/// Whether `path` is a folder (or a link to one).
bool is_folder(const std::string& path);

}  // namespace convoy
