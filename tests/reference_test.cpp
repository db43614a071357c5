// Runs every case of every reference file: see tests/reference/README.md. The folder is that of the
// environment variable CONVOY_REFERENCE_DIR, else the one in the source tree.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "kernels/base/error.h"
#include "tests/reference_case.h"
#include "tests/support/catch.h"

namespace convoy::testing {
namespace {

namespace fs = std::filesystem;

fs::path folder() {
  const char* given = std::getenv("CONVOY_REFERENCE_DIR");
  return given && *given ? fs::path(given) : fs::path(CONVOY_SOURCE_REFERENCE_DIR);
}

// Notes and scripts lie beside the values; any other file could be values that we fail to read.
bool is_no_reference(const fs::path& path) {
  return path.extension() == ".md" || path.extension() == ".py";
}

std::vector<fs::path> reference_files() {
  std::vector<fs::path> files;
  for (auto entry = fs::recursive_directory_iterator(folder()); entry != end(entry); ++entry) {
    const std::string name = entry->path().filename();
    if (name.front() == '.' || name == "__pycache__") {
      if (entry->is_directory()) entry.disable_recursion_pending();
      continue;
    }
    if (!entry->is_directory() && !is_no_reference(entry->path())) files.push_back(entry->path());
  }
  if (files.empty()) CONVOY_FAIL(data, "{}: no reference files", folder().string());
  std::sort(files.begin(), files.end());
  return files;
}

Json cases_of(const fs::path& path) {
  if (path.extension() != ".json") CONVOY_FAIL(data, "{}: is not a .json file", path.string());
  std::ifstream stream(path);
  Json cases = Json::parse(stream);
  if (!cases.is_array() || cases.empty()) {
    CONVOY_FAIL(data, "{}: is not a list of cases", path.string());
  }
  return cases;
}

// Lines for those who watch a long run.
void run_with_progress(const std::string& where, const std::string& name,
                       const std::function<void()>& run) {
  using Clock = std::chrono::steady_clock;
  fmt::print("{}: {}\n", where, name);
  std::fflush(stdout);
  const auto start = Clock::now();
  run();
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  if (seconds > 1) fmt::print("  {:.1f} s\n", seconds);
}

using RunCase = std::function<void(const Json& given)>;

void run_all(const std::string& where, const RunCase& run_one,
             const std::function<bool(const Json& given)>& wanted) {
  for (const fs::path& path : reference_files()) {
    const std::string file = path.filename();
    DYNAMIC_SECTION(file) {
      const Json cases = cases_of(path);
      for (std::size_t i = 0; i < cases.size(); ++i) {
        if (!wanted(cases[i])) continue;
        const std::string name = fmt::format("{}[{}] {}", file, i, title(cases[i]));
        DYNAMIC_SECTION(name) {
          run_with_progress(where, name, [&] { run_one(cases[i]); });
        }
      }
    }
  }
}

void run_all(const TensorOptions& options) {
  run_all(
      fmt::format("{} {}", to_string(options.device), convoy::name(options.dtype)),
      [&](const Json& given) { run_case(given, options); }, [](const Json&) { return true; });
}

}  // namespace

TEST_CASE("training cases in two stages, on ref:0 and ref:1 in f64") {
  run_all("two stages", run_staged_case, [](const Json& given) {
    return given.contains("micro_batch") &&
           given.at("model").get<std::string>().starts_with("resnet");
  });
}

TEST_CASE("reference values on ref:0 in f64") {
  run_all({DType::f64, "ref:0"});
}

TEST_CASE("reference values on cpu:0 in f32") {
  run_all({DType::f32, "cpu:0"});
}

}  // namespace convoy::testing
