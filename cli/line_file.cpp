#include "cli/line_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "kernels/base/error.h"

namespace convoy::cli {
namespace {

/// Bytes of the lines at the start that are whole and kept.
std::int64_t kept_bytes(const std::string& path,
                        const std::function<bool(const std::string&)>& keep) {
  std::ifstream file(path, std::ios::binary);
  std::int64_t bytes = 0;
  std::string line;
  while (std::getline(file, line) && !file.eof() && keep(line)) {
    bytes += static_cast<std::int64_t>(line.size()) + 1;
  }
  return bytes;
}

}  // namespace

LineFile::LineFile() : path_("stdout"), file_(STDOUT_FILENO) {}

LineFile::LineFile(const std::string& path) : path_(path) {
  open(O_TRUNC);
}

LineFile::LineFile(const std::string& path, const std::function<bool(const std::string&)>& keep)
    : path_(path) {
  std::error_code ignored;  // a pipe or a terminal has no lines to keep
  bool regular = std::filesystem::is_regular_file(path, ignored);
  std::int64_t bytes = regular ? kept_bytes(path, keep) : 0;
  open(0);
  if (regular && ::ftruncate(file_, bytes) != 0) {
    CONVOY_FAIL(resource, "--log: cannot cut {} to {} bytes: {}", path, bytes,
                std::strerror(errno));
  }
}

LineFile::~LineFile() {
  if (owned_) ::close(file_);
}

void LineFile::open(int flags) {
  std::error_code ignored;  // the call below says what is wrong
  std::filesystem::path folder = std::filesystem::path(path_).parent_path();
  if (!folder.empty()) std::filesystem::create_directories(folder, ignored);
  file_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | flags, 0644);
  if (file_ < 0) CONVOY_FAIL(resource, "--log: cannot write {}: {}", path_, std::strerror(errno));
  owned_ = true;
}

void LineFile::write(std::string_view line) {
  std::string bytes = std::string(line) + "\n";
  std::string_view rest = bytes;
  while (!rest.empty()) {
    ssize_t written = ::write(file_, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      CONVOY_FAIL(resource, "cannot write {} bytes to {}: {}", rest.size(), path_,
                  std::strerror(errno));
    }
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace convoy::cli
