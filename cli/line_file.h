// A file of lines that is written line by line with nothing held back: what was told is on disk's
// side when the program dies. A full disk is a `resource` error with the path.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace convoy::cli {

class LineFile {
 public:
  /// Lines go to stdout.
  LineFile();
  /// Creates `path`, or empties it; folders on the way are made.
  explicit LineFile(const std::string& path);
  ~LineFile();
  LineFile(const LineFile&) = delete;
  LineFile& operator=(const LineFile&) = delete;

  /// Goes on in an existing file: lines are read from the start and kept while `keep` says so; from
  /// the first that it refuses (or the first without an end) the file is cut. A missing file is
  /// empty.
  LineFile(const std::string& path, const std::function<bool(const std::string&)>& keep);

  /// Writes `line` and a line break in one go.
  void write(std::string_view line);

 private:
  void open(int flags);

  std::string path_;
  int file_ = -1;
  bool owned_ = false;
};

}  // namespace convoy::cli
