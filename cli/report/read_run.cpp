// Files of a run: one, or all of a folder.
#include <algorithm>
#include <filesystem>
#include <fstream>

#include "cli/report/run_record.h"
#include "engine/io/text.h"
#include "kernels/base/error.h"

namespace convoy::cli {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> files_of(const std::string& path) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) return {path};
  std::vector<std::string> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(path)) {
    if (entry.path().extension() == ".jsonl") files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  if (files.empty()) CONVOY_FAIL(data, "{}: there is no *.jsonl in this folder", printable(path));
  return files;
}

void add_file(RunRecord& record, const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) CONVOY_FAIL(data, "{}: cannot be read", printable(path));
  std::int64_t number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    if (line.empty() || add_line(record, line)) continue;
    if (file.eof()) return;  // the run was writing it, or was killed
    CONVOY_FAIL(data, "{}: line {} is no JSON object: {}", printable(path), number, excerpt(line));
  }
}

}  // namespace

RunRecord read_run(const std::string& path) {
  RunRecord record;
  record.name = path;
  for (const std::string& file : files_of(path)) add_file(record, file);
  if (record.empty()) {
    CONVOY_FAIL(data, "{}: no line is one of a run (run, step) or of bench split", printable(path));
  }
  return record;
}

}  // namespace convoy::cli
