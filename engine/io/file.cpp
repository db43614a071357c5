#include "engine/io/file.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "engine/io/text.h"
#include "kernels/base/error.h"

namespace convoy {

namespace {

/// Calls until the call was not interrupted by a signal.
template <class Call>
auto retry(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

[[noreturn]] void fail_write(const std::string& what, const std::string& path, int error) {
  CONVOY_FAIL(resource, "{} {}: {}", what, printable(path), errno_text(error));
}

/// `resource` with the reason if `result` says that a call failed.
void check_write(int result, const char* what, const std::string& path) {
  if (result < 0) fail_write(what, path, errno);
}

/// free_bytes for an error line, where failing to ask must not hide the first error.
std::string free_text(const std::string& path) {
  try {
    return fmt::format("{} bytes", free_bytes(path));
  } catch (const Error& error) {
    return error.text();
  }
}

// Linux moves at most 2^31 - 4096 bytes a call.
constexpr std::size_t kLargestCall = 1u << 30;

}  // namespace

std::string errno_text(int error) {
  return std::generic_category().message(error);
}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  if (this != &other) {
    close();
    fd_ = other.release();
  }
  return *this;
}

int Descriptor::release() {
  return std::exchange(fd_, -1);
}

int Descriptor::close() {
  const int fd = release();
  if (fd < 0 || ::close(fd) == 0) return 0;
  return errno == EINTR ? 0 : errno;  // Linux has closed it even then
}

InputFile::InputFile(std::string path, ErrorKind kind) : path_(std::move(path)), kind_(kind) {
  // O_NONBLOCK: opening a pipe must not wait for a writer.
  fd_ = Descriptor(retry([&] { return ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK); }));
  struct stat status {};
  if (fd_.get() < 0 || ::fstat(fd_.get(), &status) < 0) {
    fail("open", errno_text(errno));
  }
  if (!S_ISREG(status.st_mode)) {
    fail("read", S_ISDIR(status.st_mode) ? "a folder, expected a file"
                                         : "a device or pipe, expected a file");
  }
  size_ = static_cast<std::uint64_t>(status.st_size);
}

std::size_t InputFile::read(std::span<std::byte> out) {
  std::span<std::byte> rest = out;
  while (!rest.empty()) {
    const auto count =
        retry([&] { return ::read(fd_.get(), rest.data(), std::min(rest.size(), kLargestCall)); });
    if (count < 0) fail("read", errno_text(errno));
    if (count == 0) break;
    rest = rest.subspan(static_cast<std::size_t>(count));
  }
  return out.size() - rest.size();
}

void InputFile::fail(const char* what, const std::string& why) const {
  throw Error(kind_, fmt::format("cannot {} {}: {}", what, printable(path_), why), CONVOY_PLACE);
}

FileReader::FileReader(std::string path) : file_(std::move(path), ErrorKind::checkpoint) {}

void FileReader::read(std::span<std::byte> out) {
  const std::size_t count = file_.read(out);
  if (count < out.size()) {
    CONVOY_FAIL(checkpoint, "{}: ends {} bytes early; it was {} bytes long when opened",
                printable(path()), out.size() - count, size());
  }
  hash_.add(out);
}

FileWriter::FileWriter(std::string path) : path_(std::move(path)) {
  fd_ = Descriptor(
      retry([&] { return ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666); }));
  check_write(fd_.get(), "cannot create", path_);
}

void FileWriter::write(std::span<const std::byte> bytes) {
  for (std::span<const std::byte> rest = bytes; !rest.empty();) {
    const auto count =
        retry([&] { return ::write(fd_.get(), rest.data(), std::min(rest.size(), kLargestCall)); });
    if (count < 0) fail_write("cannot write", path_, errno);
    rest = rest.subspan(static_cast<std::size_t>(count));
  }
  size_ += bytes.size();
  hash_.add(bytes);
}

void FileWriter::finish() {
  check_write(retry([&] { return ::fsync(fd_.get()); }), "cannot sync", path_);
  if (const int error = fd_.close()) fail_write("cannot close", path_, error);
}

IgnoreFileSizeSignal::IgnoreFileSizeSignal() : previous_(::signal(SIGXFSZ, SIG_IGN)) {}
IgnoreFileSizeSignal::~IgnoreFileSizeSignal() {
  if (previous_ != SIG_ERR) ::signal(SIGXFSZ, previous_);
}

std::string read_text(const std::string& path, std::uint64_t limit) {
  FileReader reader(path);
  if (reader.size() > limit) {
    CONVOY_FAIL(checkpoint, "{}: {} bytes long, expected at most {}", printable(path),
                reader.size(), limit);
  }
  std::string text(reader.size(), '\0');
  reader.read(std::as_writable_bytes(std::span(text)));
  return text;
}

void make_folders(const std::string& path) {
  int result = retry([&] { return ::mkdir(path.c_str(), 0777); });
  if (result < 0 && errno == ENOENT && parent_of(path) != path) {
    make_folders(parent_of(path));
    result = retry([&] { return ::mkdir(path.c_str(), 0777); });
  }
  if (result == 0) return sync_folder(parent_of(path));
  const int error = errno;
  struct stat status {};
  if (error == EEXIST && ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode)) return;
  fail_write("cannot create folder", path, error);
}

void make_folder(const std::string& path) {
  check_write(retry([&] { return ::mkdir(path.c_str(), 0777); }), "cannot create folder", path);
}

void rename_path(const std::string& from, const std::string& to) {
  check_write(retry([&] { return ::rename(from.c_str(), to.c_str()); }), "cannot rename to", to);
}

bool exchange_paths(const std::string& a, const std::string& b) {
  const int result =
      retry([&] { return ::renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE); });
  if (result < 0 && errno != EINVAL && errno != ENOSYS) fail_write("cannot exchange", b, errno);
  return result == 0;
}

void sync_folder(const std::string& path) {
  Descriptor fd(retry([&] { return ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); }));
  check_write(fd.get(), "cannot open folder", path);
  check_write(retry([&] { return ::fsync(fd.get()); }), "cannot sync folder", path);
}

void remove_all(const std::string& path) {
  std::error_code error;
  do {
    std::filesystem::remove_all(path, error);
  } while (error == std::errc::interrupted);
  if (error) CONVOY_FAIL(resource, "cannot remove {}: {}", printable(path), error.message());
}

void replace_link(const std::string& target, const std::string& path,
                  const std::string& temporary) {
  remove_all(temporary);
  check_write(retry([&] { return ::symlink(target.c_str(), temporary.c_str()); }), "cannot link",
              temporary);
  rename_path(temporary, path);
}

std::string parent_of(const std::string& path) {
  const std::size_t last = path.find_last_not_of('/');
  if (last == path.npos) return path.empty() ? "." : "/";
  const std::size_t slash = path.rfind('/', last);
  if (slash == path.npos) return ".";
  const std::size_t end = path.find_last_not_of('/', slash);
  return end == path.npos ? "/" : path.substr(0, end + 1);
}

TemporaryPath::~TemporaryPath() {
  if (keep_) return;
  try {
    remove_all(path_);
  } catch (const std::exception&) {
    // Already on the way out of a failed save; the next save cleans up.
  }
}

void with_room_named(const std::string& path, std::uint64_t needed,
                     const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    // Reading while saving (the folder, a namesake) fails as `checkpoint`; here it stops a save.
    if (error.kind() != ErrorKind::resource && error.kind() != ErrorKind::checkpoint) throw;
    CONVOY_FAIL(resource, "cannot save {}: {}; needed {} bytes, free {}", printable(path),
                error.text(), needed, free_text(path));
  }
}

FileTimes times_of(const std::string& path) {
  struct stat status {};
  if (retry([&] { return ::stat(path.c_str(), &status); }) < 0) {
    CONVOY_FAIL(checkpoint, "cannot open {}: {}", printable(path), errno_text(errno));
  }
  const auto ns = [](const timespec& time) {
    return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
  };
  return {ns(status.st_mtim), ns(status.st_ctim)};
}

std::uint64_t free_bytes(const std::string& path) {
  std::string place = path;
  struct statvfs status {};
  while (retry([&] { return ::statvfs(place.c_str(), &status); }) < 0) {
    if (errno != ENOENT || parent_of(place) == place) {
      fail_write("cannot ask for the free space of", path, errno);
    }
    place = parent_of(place);
  }
  return static_cast<std::uint64_t>(status.f_bavail) * status.f_frsize;
}

}  // namespace convoy
