// Files and folders through POSIX: every call is repeated on EINTR, every short count is continued,
// every failure names path and reason. Reading failures are `checkpoint`, writing ones `resource`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>

#include "engine/io/hash.h"
#include "kernels/base/error.h"

namespace convoy {

/// Owns a file descriptor.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() { close(); }
  Descriptor(Descriptor&& other) noexcept : fd_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept;

  int get() const { return fd_; }
  int release();
  /// Closes now; the errno of close, 0 if it went well or nothing was open.
  int close();

 private:
  int fd_ = -1;
};

/// An open regular file, read from its start.
class InputFile {
 public:
  /// Its errors are of `kind`: now if `path` is absent, no regular file or cannot be opened.
  InputFile(std::string path, ErrorKind kind);

  const std::string& path() const { return path_; }
  /// Size when opened.
  std::uint64_t size() const { return size_; }
  /// Reads until `out` is full or the file ends; the bytes read.
  std::size_t read(std::span<std::byte> out);

 private:
  [[noreturn]] void fail(const char* what, const std::string& why) const;

  std::string path_;
  ErrorKind kind_;
  Descriptor fd_;
  std::uint64_t size_ = 0;
};

/// Reads a regular file from its start to its end and hashes what was read.
class FileReader {
 public:
  /// `checkpoint` if `path` is absent, no regular file or cannot be opened.
  explicit FileReader(std::string path);

  const std::string& path() const { return file_.path(); }
  /// Size when opened.
  std::uint64_t size() const { return file_.size(); }
  /// Fills `out`; `checkpoint` if the file ends before.
  void read(std::span<std::byte> out);
  /// XXH3-128 of the bytes read so far.
  std::string hash_hex() const { return hash_.hex(); }

 private:
  InputFile file_;
  Hash128 hash_;
};

/// Creates a new file (an existing one is an error) and hashes what is written.
class FileWriter {
 public:
  /// `resource` if `path` exists or cannot be created.
  explicit FileWriter(std::string path);

  const std::string& path() const { return path_; }
  std::uint64_t size() const { return size_; }
  void write(std::span<const std::byte> bytes);
  /// Forces the bytes to the disk and closes the file; without it nothing is promised.
  void finish();
  /// XXH3-128 of the bytes written so far.
  std::string hash_hex() const { return hash_.hex(); }

 private:
  std::string path_;
  Descriptor fd_;
  std::uint64_t size_ = 0;
  Hash128 hash_;
};

/// While it lives, a write over the file size limit fails with EFBIG instead of killing the
/// process.
class IgnoreFileSizeSignal {
 public:
  IgnoreFileSizeSignal();
  ~IgnoreFileSizeSignal();
  IgnoreFileSizeSignal(const IgnoreFileSizeSignal&) = delete;
  IgnoreFileSizeSignal& operator=(const IgnoreFileSizeSignal&) = delete;

 private:
  void (*previous_)(int);
};

/// The whole of a file of at most `limit` bytes; `checkpoint` otherwise.
std::string read_text(const std::string& path, std::uint64_t limit);

/// Creates `path` and the folders above it where they are absent, and syncs what it created.
void make_folders(const std::string& path);
/// Creates one folder; `resource` if it exists.
void make_folder(const std::string& path);
/// Renames within one file system, over a file or symlink, never over a filled folder.
void rename_path(const std::string& from, const std::string& to);
/// Swaps two paths at one blow where the file system can; false where it cannot.
bool exchange_paths(const std::string& a, const std::string& b);
/// Forces the entries of a folder to the disk.
void sync_folder(const std::string& path);
/// Removes a file, link or folder with all in it; absence is fine.
void remove_all(const std::string& path);
/// Makes `path` a symlink to `target`, replacing a symlink at one blow through `temporary`.
void replace_link(const std::string& target, const std::string& path, const std::string& temporary);

/// The folder that holds `path`; "." for a bare name.
std::string parent_of(const std::string& path);

/// Removes a path at the end of a scope unless told to keep it.
class TemporaryPath {
 public:
  explicit TemporaryPath(std::string path) : path_(std::move(path)) {}
  ~TemporaryPath();
  TemporaryPath(const TemporaryPath&) = delete;
  TemporaryPath& operator=(const TemporaryPath&) = delete;

  const std::string& path() const { return path_; }
  void keep() { keep_ = true; }

 private:
  std::string path_;
  bool keep_ = false;
};

/// Runs `body`, a save: its error becomes `resource` with `path`, the bytes needed and those free.
void with_room_named(const std::string& path, std::uint64_t needed,
                     const std::function<void()>& body);

/// When a file's content was last written, and when anything of it was last changed (nobody can set
/// this one), in ns since 1970.
struct FileTimes {
  std::int64_t content;
  std::int64_t change;
};

/// `checkpoint` if `path` is absent.
FileTimes times_of(const std::string& path);

/// Bytes that this user may still write at `path` (or at its nearest parent that exists).
std::uint64_t free_bytes(const std::string& path);

/// Text of an errno value.
std::string errno_text(int error);

}  // namespace convoy
