// Checkpoints of a training run: DIR/step-N/{model.safetensors, optimizer.safetensors,
// manifest.json}. One is whole or absent: it is written under a temporary name, synced, and renamed
// into place; every byte of it has a checksum. `last` and `best` in DIR are symlinks to step
// folders.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/io/file.h"
#include "engine/io/manifest.h"
#include "engine/io/named_array.h"

namespace convoy {

/// A whole training state. Tensors are whole whatever the layout was, named as torchvision does.
struct CheckpointContent {
  std::vector<NamedArray> model;
  std::vector<NamedArray> optimizer;
  /// Its step, version and files are filled in by the save.
  Manifest manifest;
};

/// What a save did.
struct SavedCheckpoint {
  std::string folder;
  /// What a user should know: a namesake moved aside, an old checkpoint that could not be removed.
  std::vector<std::string> notes;
};

/// Makes DIR/step-N and the link `last`, cleans up what a killed save left, then removes older
/// checkpoints so that `keep` whole ones remain (and the one that `best` names). An existing folder
/// is never written into: a namesake that is damaged or different is moved aside, and stays until
/// all kept ones are newer. A failure is
/// `resource` with path, needed and free bytes; older checkpoints are untouched and no temporary is
/// left.
SavedCheckpoint save_checkpoint(const std::string& dir, std::int64_t step,
                                const CheckpointContent& content, int keep = 2);

/// Bytes that `save_checkpoint` writes for `content`.
std::uint64_t checkpoint_size(const CheckpointContent& content);

/// Makes DIR/best name step-N, which is kept from then on.
void mark_best(const std::string& dir, std::int64_t step);

/// The newest valid checkpoint of a run and, newest first, why others were passed over.
struct NewestCheckpoint {
  std::optional<std::string> folder;
  std::vector<std::string> passed_over;
};

/// Checks the step folders of `dir` from new to old, every byte.
NewestCheckpoint find_newest(const std::string& dir);

/// Reads one step folder and verifies every checksum; `checkpoint` with the file named otherwise.
/// It never takes another folder instead.
CheckpointContent load_checkpoint(const std::string& step_folder);

/// Only the manifest of a step folder, verified.
Manifest load_manifest(const std::string& step_folder);

/// Reads all of a step folder and compares every checksum without keeping anything in memory.
void verify_checkpoint(const std::string& step_folder);

/// As verify_checkpoint, but a file that has its size and was last changed before the manifest was
/// written, as a save leaves it, is not read again.
void verify_untouched(const std::string& step_folder);

/// Whether `dir` holds step folders, valid or not.
bool holds_run(const std::string& dir);

/// `resource` if checkpoints of `bytes` bytes do not fit once; a warning if not three times; else
/// "".
std::string check_room(const std::string& dir, std::uint64_t bytes);

/// Holds DIR for this process until it goes out of scope.
class CheckpointLock {
 public:
  /// `usage`, naming the holder, if another run holds `dir`. Creates `dir`.
  explicit CheckpointLock(const std::string& dir);

 private:
  Descriptor fd_;
};

}  // namespace convoy
