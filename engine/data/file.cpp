#include "engine/data/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "engine/data/printable_path.h"
#include "engine/io/file.h"
#include "kernels/base/error.h"

namespace convoy {
namespace {

[[noreturn]] void fail_read(const std::string& path) {
  CONVOY_FAIL(data, "{}: cannot be read: {}", printable_path(path), std::strerror(errno));
}

/// An open regular file. O_NONBLOCK keeps open() from waiting for the other end of a pipe.
class InputFile {
 public:
  explicit InputFile(const std::string& path)
      : path_(path), fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    if (fd_.get() < 0) fail_read(path_);
  }

  std::int64_t size() const {
    struct stat status = {};
    if (::fstat(fd_.get(), &status) != 0) fail_read(path_);
    if (!S_ISREG(status.st_mode))
      CONVOY_FAIL(data, "{}: not a regular file", printable_path(path_));
    return status.st_size;
  }

  /// Reads until `out` is full or the file ends; what was read.
  std::size_t read(std::uint8_t* out, std::size_t count) const {
    std::size_t done = 0;
    while (done < count) {
      ssize_t got = ::read(fd_.get(), out + done, count - done);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) fail_read(path_);
      if (got == 0) break;
      done += static_cast<std::size_t>(got);
    }
    return done;
  }

 private:
  std::string path_;
  Descriptor fd_;
};

Bytes read_bytes(const InputFile& file, std::int64_t count) {
  Bytes bytes(static_cast<std::size_t>(count));
  bytes.resize(file.read(bytes.data(), bytes.size()));
  return bytes;
}

}  // namespace

Bytes read_file(const std::string& path, std::int64_t most) {
  InputFile file(path);
  std::int64_t size = file.size();
  if (size > most) {
    CONVOY_FAIL(data, "{}: too large: {} bytes, at most {} expected", printable_path(path), size,
                most);
  }
  return read_bytes(file, size);
}

Bytes read_start(const std::string& path, std::int64_t count) {
  InputFile file(path);
  return read_bytes(file, std::min(count, file.size()));
}

}  // namespace convoy
