// What tests of the program share.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "kernels/base/error.h"
#include "tests/support/catch.h"

namespace convoy::cli {

/// The text of the usage error that `call` throws; fails the test if it throws none, or another
/// kind.
template <class Call>
std::string usage_error(Call call) {
  try {
    call();
  } catch (const Error& error) {
    CHECK(std::string(name(error.kind())) == "usage");
    return error.text();
  }
  FAIL("nothing was thrown");
  return {};
}

/// A folder of its own that goes away with the object.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "convoy-XXXXXX").string();
    REQUIRE(::mkdtemp(pattern.data()));
    path_ = pattern;
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  /// The path of a file with this content.
  std::string write(const std::string& name, const std::string& content) const {
    std::ofstream(path(name), std::ios::binary) << content;
    return path(name);
  }
  std::string read(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(path(name), std::ios::binary).rdbuf();
    return text.str();
  }
  std::string path(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace convoy::cli
