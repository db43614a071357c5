// A library to preload: it counts the system calls that change or read files and makes the n-th one
// fail, fall short, or end the process, with the disk left as a crash would leave it. Environment:
//   FAULT_MODE  count | kill | torn | drop | short | errno:N | budget (bytes that may be written)
//   FAULT_AT    n, from 1 (or the budget)       FAULT_LOG  a file that gets one line per call
// kill: everything done so far stays. torn: half of the n-th write is done. drop: whatever was not
// synced is lost, that is bytes without fsync and names without fsync of their folder.
// Nothing is truly synced: the machine does not lose power, and tests are fast.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace {

constexpr int kExitCode = 99;
constexpr int kMost = 256;

/// A file with bytes that may be lost.
struct Unsynced {
  dev_t device;
  ino_t inode;
  int fd;
  off_t synced;
};

/// A name made or moved that may be lost.
struct Change {
  enum Kind { kCreated, kRenamed, kExchanged } kind;
  char from[PATH_MAX];
  char to[PATH_MAX];
};

struct State {
  const char* mode = nullptr;
  long at = 0;
  long calls = 0;
  long written = 0;
  int log = 0;
  Unsynced files[kMost] = {};
  int file_count = 0;
  Change changes[kMost] = {};
  int change_count = 0;
};

// All zero before any constructor runs: `start` may well come before the others.
constinit State state;

template <class Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

[[gnu::constructor]] void start() {
  const char* mode = ::getenv("FAULT_MODE");
  state.mode = mode ? mode : "count";
  if (const char* at = ::getenv("FAULT_AT")) state.at = ::atol(at);
  if (const char* log = ::getenv("FAULT_LOG")) {
    state.log = static_cast<int>(
        ::syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  }
}

bool mode_is(const char* mode) {
  return ::strcmp(state.mode, mode) == 0;
}

void path_of(int fd, char* path) {
  char link[64];
  ::snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t size = ::readlink(link, path, PATH_MAX - 1);
  path[size < 0 ? 0 : size] = '\0';
}

void undo(const Change& change) {
  if (change.kind == Change::kExchanged) {
    ::syscall(SYS_renameat2, AT_FDCWD, change.from, AT_FDCWD, change.to, 2u);
  } else if (change.kind == Change::kRenamed) {
    ::syscall(SYS_renameat2, AT_FDCWD, change.to, AT_FDCWD, change.from, 0u);
  } else if (::syscall(SYS_unlinkat, AT_FDCWD, change.to, 0) < 0) {
    ::syscall(SYS_unlinkat, AT_FDCWD, change.to, AT_REMOVEDIR);
  }
}

[[noreturn]] void die() {
  if (mode_is("drop")) {
    for (int i = 0; i < state.file_count; ++i) {
      ::syscall(SYS_ftruncate, state.files[i].fd, state.files[i].synced);
    }
    for (int i = state.change_count - 1; i >= 0; --i) undo(state.changes[i]);
  }
  ::_exit(kExitCode);
}

void remember(Change::Kind kind, const char* from, const char* to) {
  if (state.change_count == kMost) ::abort();
  Change& change = state.changes[state.change_count++];
  change.kind = kind;
  ::snprintf(change.from, PATH_MAX, "%s", from);
  ::snprintf(change.to, PATH_MAX, "%s", to);
}

Unsynced* find_file(int fd) {
  struct stat status;
  ::fstat(fd, &status);
  if (!S_ISREG(status.st_mode)) return nullptr;
  for (int i = 0; i < state.file_count; ++i) {
    Unsynced& file = state.files[i];
    if (file.device == status.st_dev && file.inode == status.st_ino) return &file;
  }
  if (state.file_count == kMost) ::abort();
  const int copy = ::fcntl(fd, F_DUPFD_CLOEXEC, 100);
  state.files[state.file_count] = {status.st_dev, status.st_ino, copy, 0};
  return &state.files[state.file_count++];
}

/// Forgets the changes of names in the folder behind `fd`, or marks the bytes of its file as safe.
void note_sync(int fd) {
  if (Unsynced* file = find_file(fd)) {
    struct stat status;
    ::fstat(fd, &status);
    file->synced = status.st_size;
    return;
  }
  char folder[PATH_MAX];
  path_of(fd, folder);
  int kept = 0;
  for (int i = 0; i < state.change_count; ++i) {
    const Change& change = state.changes[i];
    const char* slash = ::strrchr(change.to, '/');
    const auto length = static_cast<size_t>(slash - change.to);
    const bool inside = ::strlen(folder) == length && ::strncmp(folder, change.to, length) == 0;
    if (!inside) ::memmove(&state.changes[kept++], &change, sizeof change);
  }
  state.change_count = kept;
}

/// Counts a call; true if this is the one that must return -1 with errno set.
bool fails(const char* name, const char* path, const char* other = nullptr) {
  if (state.log > 0) {
    char line[2 * PATH_MAX + 64];
    const int size = ::snprintf(line, sizeof line, "%s %s%s%s\n", name, path, other ? " " : "",
                                other ? other : "");
    ::syscall(SYS_write, state.log, line, size);
  }
  if (++state.calls != state.at) return false;
  if (mode_is("kill") || mode_is("drop")) die();
  if (::strncmp(state.mode, "errno:", 6) != 0) return false;
  errno = ::atoi(state.mode + 6);
  return true;
}

bool is_turn(const char* mode) {
  return state.calls == state.at && mode_is(mode);
}

bool fails_fd(const char* name, int fd) {
  char path[PATH_MAX];
  path_of(fd, path);
  return fails(name, path);
}

mode_t mode_argument(int flags, va_list arguments) {
  return (flags & (O_CREAT | O_TMPFILE)) ? va_arg(arguments, mode_t) : 0;
}

int open_counted(const char* name, int folder, const char* path, int flags, mode_t mode) {
  if (fails(name, path)) return -1;
  const int fd = static_cast<int>(::syscall(SYS_openat, folder, path, flags, mode));
  if (fd >= 0 && (flags & O_EXCL)) remember(Change::kCreated, "", path);
  return fd;
}

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_argument(flags, arguments);
  va_end(arguments);
  return open_counted("open", AT_FDCWD, path, flags, mode);
}

int open64(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_argument(flags, arguments);
  va_end(arguments);
  return open_counted("open", AT_FDCWD, path, flags, mode);
}

int openat(int folder, const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_argument(flags, arguments);
  va_end(arguments);
  return open_counted("openat", folder, path, flags, mode);
}

int openat64(int folder, const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_argument(flags, arguments);
  va_end(arguments);
  return open_counted("openat", folder, path, flags, mode);
}

ssize_t write(int fd, const void* bytes, size_t count) {
  if (fails_fd("write", fd)) return -1;
  if (mode_is("budget")) {
    if (state.written >= state.at) {
      errno = ENOSPC;
      return -1;
    }
    const auto room = static_cast<size_t>(state.at - state.written);
    count = count < room ? count : room;
  }
  if ((is_turn("short") || is_turn("torn")) && count > 1) count /= 2;
  find_file(fd);
  const ssize_t written = ::syscall(SYS_write, fd, bytes, count);
  if (is_turn("torn")) die();
  if (written > 0) state.written += written;
  return written;
}

ssize_t read(int fd, void* bytes, size_t count) {
  if (fails_fd("read", fd)) return -1;
  if (is_turn("short") && count > 1) count /= 2;
  return ::syscall(SYS_read, fd, bytes, count);
}

int fsync(int fd) {
  if (fails_fd("fsync", fd)) return -1;
  note_sync(fd);
  return 0;
}

int close(int fd) {
  const bool failed = fails_fd("close", fd);
  const int error = errno;
  const int result = static_cast<int>(::syscall(SYS_close, fd));  // closed even then, as Linux does
  if (!failed) return result;
  errno = error;
  return -1;
}

int rename(const char* from, const char* to) {
  if (fails("rename", from, to)) return -1;
  const int result = static_cast<int>(::syscall(SYS_rename, from, to));
  if (result == 0) remember(Change::kRenamed, from, to);
  return result;
}

int renameat2(int, const char* from, int, const char* to, unsigned flags) {
  if (fails("exchange", from, to)) return -1;
  const int result =
      static_cast<int>(::syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, flags));
  if (result == 0) remember(Change::kExchanged, from, to);
  return result;
}

int mkdir(const char* path, mode_t mode) {
  if (fails("mkdir", path)) return -1;
  const int result = static_cast<int>(::syscall(SYS_mkdir, path, mode));
  if (result == 0) remember(Change::kCreated, "", path);
  return result;
}

int symlink(const char* target, const char* path) {
  if (fails("symlink", path)) return -1;
  const int result = static_cast<int>(::syscall(SYS_symlink, target, path));
  if (result == 0) remember(Change::kCreated, "", path);
  return result;
}

int unlinkat(int folder, const char* path, int flags) {
  if (fails("unlinkat", path)) return -1;
  return static_cast<int>(::syscall(SYS_unlinkat, folder, path, flags));
}

int unlink(const char* path) {
  if (fails("unlink", path)) return -1;
  return static_cast<int>(::syscall(SYS_unlink, path));
}

int rmdir(const char* path) {
  if (fails("rmdir", path)) return -1;
  return static_cast<int>(::syscall(SYS_rmdir, path));
}

int statvfs(const char* path, struct statvfs* out) {
  if (fails("statvfs", path)) return -1;
  return next<int(const char*, struct statvfs*)>("statvfs")(path, out);
}

int statvfs64(const char* path, struct statvfs64* out) {
  if (fails("statvfs", path)) return -1;
  return next<int(const char*, struct statvfs64*)>("statvfs64")(path, out);
}

}  // extern "C"
