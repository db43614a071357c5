#include "engine/train/run_folder.h"

#include <filesystem>

#include "engine/io/checkpoint.h"
#include "engine/io/checkpoint_folder.h"
#include "kernels/base/error.h"

namespace convoy {
namespace {

namespace fs = std::filesystem;

// One checkpoint, not the folder of a run.
bool is_step_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path / kManifestFile, ignored) ||
         (step_of_name(path.filename().string()) && fs::is_directory(path, ignored));
}

fs::path without_slash(const std::string& text) {
  const fs::path path = fs::path(text).lexically_normal();
  return path.has_filename() ? path : path.parent_path();
}

RunFolder named_step(const Settings& settings, const fs::path& path) {
  CONVOY_CHECK(!settings.resume.empty(),
               "checkpoint: {} is one checkpoint, which nothing may be written into; name the "
               "folder that holds it, or go on from it with --resume",
               path.string());
  const fs::path parent = path.has_parent_path() ? path.parent_path() : fs::path(".");
  return {parent.string(), path.string()};
}

}  // namespace

RunFolder find_run_folder(const Settings& settings) {
  if (settings.checkpoint.empty()) {
    CONVOY_CHECK(settings.resume.empty(), "resume: --checkpoint DIR says from where");
    return {};
  }
  const fs::path path = without_slash(settings.checkpoint);
  const bool resumes = settings.resume == "yes";
  CONVOY_CHECK(!resumes || settings.weights.empty(),
               "resume: the weights come from the checkpoint; --weights {} does not fit",
               settings.weights);
  if (is_step_folder(path)) return named_step(settings, path);
  std::error_code ignored;
  const bool holds = fs::is_directory(path, ignored) && holds_run(path.string());
  CONVOY_CHECK(!holds || !settings.resume.empty(),
               "checkpoint: {} holds a run; go on with --resume, or take another folder",
               settings.checkpoint);
  if (resumes && !holds) {
    CONVOY_FAIL(checkpoint, "resume: {} holds no valid checkpoint", settings.checkpoint);
  }
  return {path.string(), holds ? std::optional(path.string()) : std::nullopt};
}

}  // namespace convoy
