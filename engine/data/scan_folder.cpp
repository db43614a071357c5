#include "engine/data/scan_folder.h"

#include <dirent.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>

#include "engine/data/decode_image.h"
#include "engine/data/file.h"
#include "engine/io/text.h"
#include "kernels/base/error.h"

namespace convoy {
namespace {

constexpr std::size_t kDeepest = 128;  // folders within each other

[[noreturn]] void fail_folder(const std::string& path) {
  CONVOY_FAIL(data, "{}: folder cannot be read: {}", printable(path), std::strerror(errno));
}

/// The names in a folder in byte order, without "." and "..".
std::vector<std::string> names_in(const std::string& folder) {
  struct Closer {
    void operator()(DIR* dir) const { ::closedir(dir); }
  };
  std::unique_ptr<DIR, Closer> dir(::opendir(folder.c_str()));
  if (!dir) fail_folder(folder);
  std::vector<std::string> names;
  for (;;) {
    errno = 0;
    dirent* entry = ::readdir(dir.get());
    if (entry == nullptr) break;
    std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  if (errno != 0) fail_folder(folder);
  std::sort(names.begin(), names.end());  // std::string compares unsigned bytes
  return names;
}

/// What the name leads to, links followed; absent for a dangling link.
std::optional<struct stat> status_of(const std::string& path) {
  struct stat status = {};
  if (::stat(path.c_str(), &status) != 0) return {};
  return status;
}

/// By its ending, or else by its first bytes.
bool is_image(const std::string& path, const std::optional<struct stat>& status) {
  if (has_image_ending(path)) return true;
  if (!status || !S_ISREG(status->st_mode) || status->st_size == 0) return false;
  try {
    return image_type(read_start(path, kSignatureBytes)) != ImageType::none;
  } catch (const Error&) {
    return false;  // unreadable and not named like an image: foreign
  }
}

bool same_folder(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

class Scanner {
 public:
  explicit Scanner(std::string root) : root_(std::move(root)) {}

  FoundFolder run() {
    std::optional<struct stat> status = status_of(root_);
    if (!status) fail_folder(root_);
    way_down_.push_back(*status);
    for (const std::string& name : names_in(root_)) visit_top(name);
    return std::move(found_);
  }

 private:
  std::string full(const std::string& path) const { return root_ + "/" + path; }

  void visit_top(const std::string& name) {
    if (name[0] == '.') {
      ++found_.ignored;
      return;
    }
    std::optional<struct stat> status = status_of(full(name));
    if (status && S_ISDIR(status->st_mode)) {
      if (is_loop(*status)) return;
      found_.classes.push_back({name, {}});
      descend(name, *status);
    } else if (is_image(full(name), status)) {
      found_.loose_images.push_back(name);
    } else {
      ++found_.ignored;
    }
  }

  void visit(const std::string& path, const std::string& name) {
    if (name[0] == '.') {
      ++found_.ignored;
      return;
    }
    std::optional<struct stat> status = status_of(full(path));
    if (status && S_ISDIR(status->st_mode)) {
      if (!is_loop(*status)) descend(path, *status);
    } else if (is_image(full(path), status)) {
      found_.classes.back().images.push_back({path, status ? status->st_size : 0});
    } else {
      ++found_.ignored;
    }
  }

  void descend(const std::string& path, const struct stat& status) {
    if (way_down_.size() > kDeepest) {
      CONVOY_FAIL(data, "{}: folders nested deeper than {}", printable(full(path)), kDeepest);
    }
    way_down_.push_back(status);
    for (const std::string& name : names_in(full(path))) visit(path + "/" + name, name);
    way_down_.pop_back();
  }

  bool is_loop(const struct stat& status) {
    bool loop = std::any_of(way_down_.begin(), way_down_.end(),
                            [&](const struct stat& s) { return same_folder(s, status); });
    found_.loops += loop ? 1 : 0;
    return loop;
  }

  std::string root_;
  std::vector<struct stat> way_down_;
  FoundFolder found_;
};

}  // namespace

FoundFolder scan_folder(const std::string& root) {
  return Scanner(root).run();
}

std::int64_t count_ignored(const std::string& folder) {
  std::int64_t ignored = 0;
  for (const std::string& name : names_in(folder)) {
    std::optional<struct stat> status = status_of(folder + "/" + name);
    bool folder_there = status && S_ISDIR(status->st_mode);
    if (name[0] == '.' || (!folder_there && !is_image(folder + "/" + name, status))) ++ignored;
  }
  return ignored;
}

bool is_folder(const std::string& path) {
  std::optional<struct stat> status = status_of(path);
  return status && S_ISDIR(status->st_mode);
}

}  // namespace convoy
