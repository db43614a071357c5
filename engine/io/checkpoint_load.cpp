// Finding, verifying and reading checkpoints.
#include <algorithm>
#include <array>

#include "engine/io/checkpoint.h"
#include "engine/io/checkpoint_folder.h"
#include "engine/io/safetensors.h"
#include "engine/io/text.h"
#include "kernels/base/error.h"

namespace convoy {

namespace {

constexpr std::uint64_t kManifestBytes = 64u << 20;

/// Compares what was read to the end of a file with the manifest's record of it.
void check_record(const FileReader& reader, const FileRecord& record) {
  if (const std::string hash = reader.hash_hex(); hash != record.xxh3_128) {
    CONVOY_FAIL(checkpoint, "{}: damaged: checksum {}, the manifest says {}",
                printable(reader.path()), hash, excerpt(record.xxh3_128));
  }
}

FileReader open_recorded(const std::string& folder, const FileRecord& record) {
  FileReader reader(in_folder(folder, record.name));
  if (reader.size() != record.size) {
    CONVOY_FAIL(checkpoint, "{}: {} bytes long, the manifest says {}", printable(reader.path()),
                reader.size(), record.size);
  }
  return reader;
}

const FileRecord& find_record(const Manifest& manifest, const std::string& folder,
                              const char* name) {
  const auto found = std::find_if(manifest.files.begin(), manifest.files.end(),
                                  [&](const FileRecord& file) { return file.name == name; });
  if (found == manifest.files.end()) {
    CONVOY_FAIL(checkpoint, "{}: lists no file {}", printable(in_folder(folder, kManifestFile)),
                name);
  }
  return *found;
}

void verify_file(const std::string& folder, const FileRecord& record) {
  FileReader reader = open_recorded(folder, record);
  std::vector<std::byte> piece(std::min<std::uint64_t>(record.size, 1u << 20));
  for (std::uint64_t rest = record.size; rest > 0;) {
    const std::span<std::byte> part(piece.data(), std::min<std::uint64_t>(rest, piece.size()));
    reader.read(part);
    rest -= part.size();
  }
  check_record(reader, record);
}

std::vector<NamedArray> load_tensors(const std::string& folder, const Manifest& manifest,
                                     const char* name) {
  const FileRecord& record = find_record(manifest, folder, name);
  FileReader reader = open_recorded(folder, record);
  SafetensorsFile file = read_safetensors(reader);
  check_record(reader, record);
  return std::move(file.tensors);
}

}  // namespace

Manifest load_manifest(const std::string& step_folder) {
  const std::string path = in_folder(step_folder, kManifestFile);
  Manifest manifest = parse_manifest(read_text(path, kManifestBytes), path);
  find_record(manifest, step_folder, kModelFile);
  find_record(manifest, step_folder, kOptimizerFile);
  return manifest;
}

void verify_checkpoint(const std::string& step_folder) {
  for (const FileRecord& record : load_manifest(step_folder).files) {
    verify_file(step_folder, record);
  }
}

void verify_untouched(const std::string& step_folder) {
  const Manifest manifest = load_manifest(step_folder);
  const FileTimes written = times_of(in_folder(step_folder, kManifestFile));
  for (const FileRecord& record : manifest.files) {
    open_recorded(step_folder, record);
    // A change in the same tick of the clock shows no later time.
    const bool untouched = times_of(in_folder(step_folder, record.name)).change < written.content;
    if (!untouched) verify_file(step_folder, record);
  }
}

NewestCheckpoint find_newest(const std::string& dir) {
  NewestCheckpoint newest;
  for (const StepFolder& candidate : list_steps(dir)) {
    try {
      verify_checkpoint(candidate.path);
      newest.folder = candidate.path;
      return newest;
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::checkpoint) throw;
      newest.passed_over.push_back(error.text());
    }
  }
  return newest;
}

CheckpointContent load_checkpoint(const std::string& step_folder) {
  CheckpointContent content;
  content.manifest = load_manifest(step_folder);
  content.model = load_tensors(step_folder, content.manifest, kModelFile);
  content.optimizer = load_tensors(step_folder, content.manifest, kOptimizerFile);
  return content;
}

}  // namespace convoy
