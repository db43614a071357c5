// Names and places in the folder of a run, shared by saving and finding checkpoints.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace convoy {

inline constexpr const char* kModelFile = "model.safetensors";
inline constexpr const char* kOptimizerFile = "optimizer.safetensors";
inline constexpr const char* kManifestFile = "manifest.json";
/// Whatever starts like this is left over from a save or removal that was cut short.
inline constexpr const char* kTemporaryPrefix = ".saving-";

/// Between the name of a step folder and a number: what another state of the step was called then.
inline constexpr const char* kAside = ".aside-";

/// One step folder of a run.
struct StepFolder {
  std::int64_t step = 0;
  std::string path;
};

/// "step-12".
std::string step_name(std::int64_t step);

/// The step that a folder's name says; empty if it is no such name.
std::optional<std::int64_t> step_of_name(std::string_view name);

/// The step of a folder that was moved aside ("step-12.aside-1"); empty if it is no such name.
std::optional<std::int64_t> step_of_aside(std::string_view name);

/// DIR/name.
std::string in_folder(const std::string& dir, std::string_view name);

/// All step folders of `dir`, newest first; none if `dir` is absent.
std::vector<StepFolder> list_steps(const std::string& dir);

/// Names of all entries of `dir`, in byte order; none if it is absent.
std::vector<std::string> list_names(const std::string& dir);

/// Whether anything, a dangling link too, is at `path`.
bool path_exists(const std::string& path);

}  // namespace convoy
