// Saving: the order of the steps below is what makes a checkpoint whole or absent at every moment.
#include <algorithm>
#include <filesystem>
#include <system_error>

#include "engine/io/checkpoint.h"
#include "engine/io/checkpoint_folder.h"
#include "engine/io/safetensors.h"
#include "engine/io/text.h"
#include "kernels/base/error.h"

namespace convoy {

namespace {

using Notes = std::vector<std::string>;

FileRecord write_tensors(const std::string& folder, const char* name,
                         const std::vector<NamedArray>& tensors) {
  FileWriter writer(in_folder(folder, name));
  write_safetensors(writer, tensors, {{"format", "pt"}});
  writer.finish();
  return {name, writer.size(), writer.hash_hex()};
}

Manifest filled_manifest(const CheckpointContent& content, std::int64_t step) {
  Manifest manifest = content.manifest;
  manifest.step = step;
  manifest.convoy_version = CONVOY_VERSION;
  manifest.files.clear();
  return manifest;
}

/// Makes the new folder: tensors first, the manifest last, each on the disk before the next name.
void write_folder(const std::string& folder, const CheckpointContent& content, std::int64_t step) {
  make_folder(folder);
  Manifest manifest = filled_manifest(content, step);
  manifest.files.push_back(write_tensors(folder, kModelFile, content.model));
  manifest.files.push_back(write_tensors(folder, kOptimizerFile, content.optimizer));
  const std::string path = in_folder(folder, kManifestFile);
  FileWriter writer(path + ".tmp");
  writer.write(bytes_of(manifest_text(manifest)));
  writer.finish();
  rename_path(path + ".tmp", path);
  sync_folder(folder);
}

/// Why `folder` is not whole by what `verify` finds, empty if it is.
std::string damage(const std::string& folder, void (*verify)(const std::string&)) {
  try {
    verify(folder);
    return "";
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::checkpoint) throw;
    return error.text();
  }
}

std::string free_name(const std::string& folder) {
  for (int i = 1;; ++i) {
    std::string name = fmt::format("{}{}{}", folder, kAside, i);
    if (!path_exists(name)) return name;
  }
}

/// Swaps the temporary folder with its namesake, which then gets the name `aside`.
void swap_in(TemporaryPath& temporary, const std::string& folder, const std::string& aside) {
  if (!exchange_paths(temporary.path(), folder)) {
    rename_path(folder, aside);
    rename_path(temporary.path(), folder);
    return temporary.keep();
  }
  try {
    rename_path(temporary.path(), aside);
    temporary.keep();
  } catch (const Error&) {
    exchange_paths(temporary.path(), folder);  // the namesake must not go with the temporary
    throw;
  }
}

/// Puts the temporary folder in the place of a namesake, which gets another name.
void replace_namesake(TemporaryPath& temporary, const std::string& folder,
                      const std::string& reason, Notes& notes) {
  const std::string aside = free_name(folder);
  swap_in(temporary, folder, aside);
  notes.push_back(
      fmt::format("{} moved aside to {}: {}", printable(folder), printable(aside), reason));
}

// "--batch 8, now 4, --log ..."; settings as JSON.
std::string different_settings(const Manifest& before, const Manifest& now) {
  std::map<std::string, std::string> all = before.settings;
  all.insert(now.settings.begin(), now.settings.end());
  const auto value = [](const Manifest& manifest, const std::string& name) {
    const auto found = manifest.settings.find(name);
    return found == manifest.settings.end() ? "unset" : found->second;
  };
  std::string text;
  for (const auto& [name, any] : all) {
    const std::string old = value(before, name), after = value(now, name);
    if (old == after) continue;
    text += fmt::format("{}--{} {} (now {})", text.empty() ? "" : ", ", name, old, after);
  }
  return text;
}

/// How the whole state of a namesake differs from the one to be saved; empty: not at all.
std::string difference(const Manifest& before, const Manifest& now) {
  if (before == now) return "";
  if (before.files != now.files) return "it holds another state of the same step";
  const std::string settings = different_settings(before, now);
  return fmt::format("its weights are the same, but it has other {}",
                     settings.empty() ? "figures of the run" : "settings: " + settings);
}

/// Gives the temporary folder, whole and on the disk, its name.
void publish(TemporaryPath& temporary, const std::string& folder, Notes& notes) {
  if (!path_exists(folder)) {
    rename_path(temporary.path(), folder);
    return temporary.keep();
  }
  std::string reason = damage(folder, verify_checkpoint);
  if (reason.empty()) reason = difference(load_manifest(folder), load_manifest(temporary.path()));
  if (reason.empty()) return;  // the very state is there already
  replace_namesake(temporary, folder, reason, notes);
}

void clean_leftovers(const std::string& dir) {
  for (const std::string& name : list_names(dir)) {
    if (name.starts_with(kTemporaryPrefix)) remove_all(in_folder(dir, name));
  }
}

std::string link_target(const std::string& path) {
  std::error_code error;
  return std::filesystem::read_symlink(path, error).filename().string();
}

void link_step(const std::string& dir, const char* link, std::int64_t step) {
  replace_link(step_name(step), in_folder(dir, link),
               in_folder(dir, fmt::format("{}{}", kTemporaryPrefix, link)));
}

/// Renames first, so that a removal cut short never leaves half a step folder.
void remove_step(const std::string& dir, const StepFolder& old) {
  const std::string doomed =
      in_folder(dir, fmt::format("{}old-{}", kTemporaryPrefix, step_name(old.step)));
  rename_path(old.path, doomed);
  remove_all(doomed);
}

/// Removes what was moved aside from steps before `oldest`.
void prune_asides(const std::string& dir, std::int64_t oldest) {
  for (const std::string& name : list_names(dir)) {
    const std::optional<std::int64_t> step = step_of_aside(name);
    if (step && *step < oldest) remove_step(dir, {*step, in_folder(dir, name)});
  }
}

/// Keeps `step`, and of the older ones as many as make `keep` whole ones.
void prune(const std::string& dir, std::int64_t step, int keep) {
  const std::string best = link_target(in_folder(dir, "best"));
  std::int64_t oldest = step;
  int whole = 1;
  for (const StepFolder& old : list_steps(dir)) {
    if (old.step >= step) continue;
    if (whole < keep) {
      whole += damage(old.path, verify_untouched).empty();
      oldest = old.step;
    } else if (best != step_name(old.step)) {
      remove_step(dir, old);
    }
  }
  if (whole == keep) prune_asides(dir, oldest);
}

/// The checkpoint is safe; what fails from here on is worth a note, not the end of the run.
template <class Body>
void noting(Notes& notes, Body body) {
  try {
    body();
  } catch (const Error& error) {
    notes.push_back(error.text());
  }
}

}  // namespace

std::uint64_t checkpoint_size(const CheckpointContent& content) {
  const std::map<std::string, std::string> metadata{{"format", "pt"}};
  Manifest manifest = filled_manifest(content, content.manifest.step);
  const std::string no_hash(32, '0');
  manifest.files = {
      {kModelFile, safetensors_size(content.model, metadata), no_hash},
      {kOptimizerFile, safetensors_size(content.optimizer, metadata), no_hash},
  };
  return manifest.files[0].size + manifest.files[1].size + manifest_text(manifest).size();
}

SavedCheckpoint save_checkpoint(const std::string& dir, std::int64_t step,
                                const CheckpointContent& content, int keep) {
  CONVOY_CHECK(keep >= 1, "checkpoint: keep is {}, expected at least 1", keep);
  CONVOY_DCHECK(step >= 0, "checkpoint: step is {}", step);
  IgnoreFileSizeSignal ignore_signal;
  SavedCheckpoint saved{in_folder(dir, step_name(step)), {}};
  with_room_named(saved.folder, checkpoint_size(content), [&] {
    make_folders(dir);
    clean_leftovers(dir);
    TemporaryPath temporary(in_folder(dir, kTemporaryPrefix + step_name(step)));
    write_folder(temporary.path(), content, step);
    publish(temporary, saved.folder, saved.notes);
    sync_folder(dir);
  });
  noting(saved.notes, [&] { link_step(dir, "last", step); });
  noting(saved.notes, [&] { prune(dir, step, keep); });
  noting(saved.notes, [&] { sync_folder(dir); });
  return saved;
}

void mark_best(const std::string& dir, std::int64_t step) {
  CONVOY_DCHECK(path_exists(in_folder(dir, step_name(step))), "checkpoint: no {} in {}",
                step_name(step), printable(dir));
  link_step(dir, "best", step);
  sync_folder(dir);
}

}  // namespace convoy
