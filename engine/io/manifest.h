// The manifest of a checkpoint: readable JSON that says which run, where in it, and which files
// with which checksums. Its own checksum stands at its end, so every byte of a checkpoint is
// covered.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace convoy {

/// One file beside the manifest.
struct FileRecord {
  std::string name;
  std::uint64_t size = 0;
  /// XXH3-128, 32 hex digits.
  std::string xxh3_128;

  friend bool operator==(const FileRecord&, const FileRecord&) = default;
};

/// Everything of a training state that is not a tensor. Names may be any bytes.
struct Manifest {
  /// The newest format that this code reads, and the one that it writes.
  static constexpr std::int64_t kFormat = 1;

  std::string convoy_version;
  std::string model;
  std::int64_t classes = 0;
  std::int64_t image_size = 0;
  std::int64_t epoch = 0;
  /// Images of this epoch that are done.
  std::int64_t images_done = 0;
  std::int64_t step = 0;
  std::uint64_t seed = 0;
  std::vector<std::string> class_names;
  std::vector<double> mean;
  std::vector<double> deviation;
  /// Setting (named as its flag) to JSON text.
  std::map<std::string, std::string> settings;
  std::string data_fingerprint;
  std::string optimizer;
  /// State of the optimizer that is no tensor: step counts, running products, ...
  std::map<std::string, double> optimizer_scalars;
  /// Steps that the learning-rate schedule has made.
  std::int64_t lr_position = 0;
  /// Figures of the run so far, such as the best top-1.
  std::map<std::string, double> metrics;
  std::vector<FileRecord> files;

  friend bool operator==(const Manifest&, const Manifest&) = default;
};

/// The JSON text, checksum last. `internal` if a number is not finite or a setting is no JSON.
std::string manifest_text(const Manifest& manifest);

/// Reads what `manifest_text` wrote; `path` is for messages. `checkpoint` on a newer format (said
/// as such), any changed byte, a missing key or a wrong type.
Manifest parse_manifest(std::string_view text, const std::string& path);

}  // namespace convoy
