#include "engine/io/checkpoint_folder.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <system_error>

#include "engine/io/checkpoint.h"
#include "engine/io/text.h"
#include "kernels/base/error.h"

namespace convoy {

namespace fs = std::filesystem;

std::string step_name(std::int64_t step) {
  return fmt::format("step-{}", step);
}

std::optional<std::int64_t> step_of_name(std::string_view name) {
  constexpr std::string_view kPrefix = "step-";
  if (!name.starts_with(kPrefix)) return {};
  const std::string_view digits = name.substr(kPrefix.size());
  std::int64_t step = -1;
  std::from_chars(digits.data(), digits.data() + digits.size(), step);
  // Comparing with the one right spelling refuses signs, leading zeros, rests and overflow.
  return step >= 0 && step_name(step) == name ? std::optional(step) : std::nullopt;
}

std::optional<std::int64_t> step_of_aside(std::string_view name) {
  const std::size_t at = name.find(kAside);
  if (at == name.npos) return {};
  const std::string_view digits = name.substr(at + std::string_view(kAside).size());
  const bool numbered = !digits.empty() && digits.find_first_not_of("0123456789") == digits.npos;
  return numbered ? step_of_name(name.substr(0, at)) : std::nullopt;
}

std::string in_folder(const std::string& dir, std::string_view name) {
  return fmt::format("{}{}{}", dir, dir.ends_with('/') ? "" : "/", name);
}

namespace {

/// Names of all entries of `dir`, unsorted.
std::vector<std::string> read_names(const std::string& dir, std::error_code& error) {
  std::vector<std::string> names;
  for (fs::directory_iterator it(dir, error), end; !error && it != end; it.increment(error)) {
    names.push_back(it->path().filename().string());
  }
  return names;
}

}  // namespace

std::vector<std::string> list_names(const std::string& dir) {
  std::error_code error;
  std::vector<std::string> names = read_names(dir, error);
  while (error == std::errc::interrupted) names = read_names(dir, error);
  if (error && error != std::errc::no_such_file_or_directory) {
    CONVOY_FAIL(checkpoint, "cannot list folder {}: {}", printable(dir), error.message());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<StepFolder> list_steps(const std::string& dir) {
  std::vector<StepFolder> steps;
  for (const std::string& name : list_names(dir)) {
    const std::optional<std::int64_t> step = step_of_name(name);
    std::error_code error;
    const std::string path = in_folder(dir, name);
    if (step && fs::symlink_status(path, error).type() == fs::file_type::directory) {
      steps.push_back({*step, path});
    }
  }
  std::sort(steps.begin(), steps.end(),
            [](const StepFolder& a, const StepFolder& b) { return a.step > b.step; });
  return steps;
}

bool path_exists(const std::string& path) {
  std::error_code error;
  return fs::symlink_status(path, error).type() != fs::file_type::not_found;
}

bool holds_run(const std::string& dir) {
  return !list_steps(dir).empty();
}

std::string check_room(const std::string& dir, std::uint64_t bytes) {
  const std::uint64_t free = free_bytes(dir);
  if (free < bytes) {
    CONVOY_FAIL(resource, "{}: no room for one checkpoint: needed {} bytes, free {} bytes",
                printable(dir), bytes, free);
  }
  if (free / 3 >= bytes) return "";
  return fmt::format("{}: room for fewer than 3 checkpoints of {} bytes: free {} bytes",
                     printable(dir), bytes, free);
}

}  // namespace convoy
