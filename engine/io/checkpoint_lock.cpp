// The lock on the folder of a run: flock on a file in it, which the system releases with the
// process.
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "engine/io/checkpoint.h"
#include "engine/io/checkpoint_folder.h"
#include "engine/io/text.h"
#include "kernels/base/error.h"

namespace convoy {

namespace {

std::string this_process() {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  return fmt::format("pid {} on {}", ::getpid(), host.data());
}

std::string holder(int fd) {
  std::array<char, 512> text{};
  const auto size = ::pread(fd, text.data(), text.size(), 0);
  return size > 0 ? excerpt({text.data(), static_cast<std::size_t>(size)}) : "another process";
}

int lock(int fd) {
  int result;
  do result = ::flock(fd, LOCK_EX | LOCK_NB);
  while (result < 0 && errno == EINTR);
  return result;
}

[[noreturn]] void fail_lock(const std::string& path, int error) {
  CONVOY_FAIL(resource, "cannot lock {}: {}", printable(path), errno_text(error));
}

}  // namespace

CheckpointLock::CheckpointLock(const std::string& dir) {
  make_folders(dir);
  const std::string path = in_folder(dir, ".lock");
  fd_ = Descriptor(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (fd_.get() < 0) fail_lock(path, errno);
  if (lock(fd_.get()) < 0) {
    if (errno != EWOULDBLOCK) fail_lock(path, errno);
    CONVOY_FAIL(usage, "checkpoint folder {} is in use by {}", printable(dir), holder(fd_.get()));
  }
  const std::string text = this_process();
  if (::ftruncate(fd_.get(), 0) < 0 ||
      ::pwrite(fd_.get(), text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) {
    fail_lock(path, errno);
  }
}

}  // namespace convoy
