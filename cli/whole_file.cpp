#include "cli/whole_file.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <span>

#include "engine/io/file.h"
#include "engine/io/text.h"
#include "kernels/base/error.h"

namespace convoy::cli {
namespace {

void write_into(const std::string& path, std::string_view text) {
  std::ofstream file(path, std::ios::binary | std::ios::app);
  file << text;
  file.close();
  if (!file) {
    CONVOY_FAIL(resource, "cannot write {} bytes to {}", text.size(), printable(path));
  }
}

}  // namespace

void prepare_file(const std::string& flag, const std::string& path) {
  std::error_code ignored;
  CONVOY_CHECK(!path.empty() && !std::filesystem::is_directory(path, ignored),
               "{} {}: this is a folder, expected a file", flag, printable(path));
  make_folders(parent_of(path));
}

void write_whole_file(const std::string& path, std::string_view text) {
  std::error_code ignored;
  const auto status = std::filesystem::status(path, ignored);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    return write_into(path, text);
  }
  make_folders(parent_of(path));
  const TemporaryPath beside(path + "." + std::to_string(::getpid()) + ".tmp");
  remove_all(beside.path());
  FileWriter file(beside.path());
  file.write(std::as_bytes(std::span(text)));
  file.finish();
  rename_path(beside.path(), path);
}

}  // namespace convoy::cli
