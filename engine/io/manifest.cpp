#include "engine/io/manifest.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "engine/io/hash.h"
#include "engine/io/text.h"
#include "kernels/base/error.h"

namespace convoy {

namespace {

using Json = nlohmann::ordered_json;

constexpr int kDepth = 16;
constexpr std::string_view kTailStart = ",\n  \"checksum\": \"";
constexpr std::string_view kTailEnd = "\"\n}\n";
constexpr std::size_t kHexDigits = 32;
constexpr std::size_t kTailLength = kTailStart.size() + kHexDigits + kTailEnd.size();

std::string checksum_of(std::string_view text) {
  return hash128_hex(bytes_of(text));
}

// --- writing -------------------------------------------------------------------------------------

Json numbers(const std::map<std::string, double>& values) {
  Json json = Json::object();
  for (const auto& [key, value] : values) {
    CONVOY_DCHECK(std::isfinite(value), "manifest: {} is {}, expected a finite number", key, value);
    json[utf8_of_bytes(key)] = value;
  }
  return json;
}

Json names(const std::vector<std::string>& values) {
  Json json = Json::array();
  for (const std::string& value : values) json.push_back(utf8_of_bytes(value));
  return json;
}

Json settings_json(const std::map<std::string, std::string>& settings) {
  Json json = Json::object();
  for (const auto& [key, text] : settings) {
    Json value = Json::parse(text, nullptr, false);
    CONVOY_DCHECK(!value.is_discarded(), "manifest: setting {} is no JSON text: {}", key, text);
    json[utf8_of_bytes(key)] = std::move(value);
  }
  return json;
}

Json files_json(const std::vector<FileRecord>& files) {
  Json json = Json::array();
  for (const FileRecord& file : files) {
    json.push_back({{"name", file.name}, {"size", file.size}, {"xxh3_128", file.xxh3_128}});
  }
  return json;
}

// --- reading -------------------------------------------------------------------------------------

[[noreturn]] void fail(const std::string& path, const std::string& what) {
  CONVOY_FAIL(checkpoint, "{}: {}", printable(path), what);
}

/// Parses `text`, refusing deep nesting and keys that stand twice in one object.
Json parse_json(std::string_view text, const std::string& path) {
  std::vector<std::set<std::string>> keys;
  const auto callback = [&](int depth, Json::parse_event_t event, Json& value) {
    if (depth > kDepth) fail(path, fmt::format("nested deeper than {} levels", kDepth));
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event == Json::parse_event_t::key && !keys.back().insert(value.get<std::string>()).second) {
      fail(path, fmt::format("double key '{}'", excerpt(value.get<std::string>())));
    }
    return true;
  };
  try {
    return Json::parse(text, callback);
  } catch (const Json::exception& error) {
    fail(path, fmt::format("damaged: {}", excerpt(error.what())));
  }
}

/// The format is looked at first: a newer one may well have its checksum elsewhere.
void check_format(const Json& json, const std::string& path) {
  const auto found = json.is_object() ? json.find("format") : json.end();
  if (!json.is_object() || found == json.end() || !found->is_number_integer()) {
    fail(path, "no checkpoint manifest: it has no number 'format'");
  }
  if (const auto format = found->get<std::int64_t>(); format != Manifest::kFormat) {
    fail(path, fmt::format("format {}, this is Convoy {} and reads format {}{}", format,
                           CONVOY_VERSION, Manifest::kFormat,
                           format > Manifest::kFormat ? "; a newer Convoy wrote it" : ""));
  }
}

void check_checksum(std::string_view text, const std::string& path) {
  const std::string_view tail =
      text.size() < kTailLength ? std::string_view() : text.substr(text.size() - kTailLength);
  if (!tail.starts_with(kTailStart) || !tail.ends_with(kTailEnd)) {
    fail(path, "damaged: it does not end in its checksum");
  }
  const std::string_view stored = tail.substr(kTailStart.size(), kHexDigits);
  const std::string actual = checksum_of(text.substr(0, text.size() - kTailLength));
  if (stored != actual) {
    fail(path, fmt::format("damaged: checksum {}, expected {}", actual, excerpt(stored)));
  }
}

std::string bytes_at(const Json& json, const char* key) {
  return bytes_of_utf8(json.at(key).get<std::string>());
}

std::map<std::string, double> numbers_at(const Json& json, const char* key) {
  std::map<std::string, double> result;
  for (const auto& item : json.at(key).items()) {
    result[bytes_of_utf8(item.key())] = item.value().get<double>();
  }
  return result;
}

void read_lists(const Json& json, Manifest& manifest) {
  for (const Json& name : json.at("class_names")) {
    manifest.class_names.push_back(bytes_of_utf8(name.get<std::string>()));
  }
  for (const auto& item : json.at("settings").items()) {
    manifest.settings[bytes_of_utf8(item.key())] = item.value().dump();
  }
  for (const Json& file : json.at("files")) {
    manifest.files.push_back({file.at("name").get<std::string>(),
                              file.at("size").get<std::uint64_t>(),
                              file.at("xxh3_128").get<std::string>()});
  }
}

Manifest read_fields(const Json& json) {
  Manifest manifest;
  manifest.convoy_version = bytes_at(json, "convoy_version");
  manifest.model = bytes_at(json, "model");
  json.at("classes").get_to(manifest.classes);
  json.at("image_size").get_to(manifest.image_size);
  json.at("epoch").get_to(manifest.epoch);
  json.at("images_done").get_to(manifest.images_done);
  json.at("step").get_to(manifest.step);
  json.at("seed").get_to(manifest.seed);
  json.at("mean").get_to(manifest.mean);
  json.at("deviation").get_to(manifest.deviation);
  manifest.data_fingerprint = bytes_at(json, "data_fingerprint");
  manifest.optimizer = bytes_at(json, "optimizer");
  manifest.optimizer_scalars = numbers_at(json, "optimizer_scalars");
  json.at("lr_position").get_to(manifest.lr_position);
  manifest.metrics = numbers_at(json, "metrics");
  read_lists(json, manifest);
  return manifest;
}

/// A manifest names files beside itself and nothing elsewhere.
void check_file_names(const Manifest& manifest, const std::string& path) {
  for (const FileRecord& file : manifest.files) {
    if (file.name.empty() || file.name.front() == '.' || file.name.find('/') != file.name.npos) {
      fail(path, fmt::format("file name '{}', expected a name without path", excerpt(file.name)));
    }
  }
}

}  // namespace

std::string manifest_text(const Manifest& manifest) {
  Json json;
  json["format"] = Manifest::kFormat;
  json["convoy_version"] = utf8_of_bytes(manifest.convoy_version);
  json["model"] = utf8_of_bytes(manifest.model);
  json["classes"] = manifest.classes;
  json["image_size"] = manifest.image_size;
  json["epoch"] = manifest.epoch;
  json["images_done"] = manifest.images_done;
  json["step"] = manifest.step;
  json["seed"] = manifest.seed;
  json["class_names"] = names(manifest.class_names);
  json["mean"] = manifest.mean;
  json["deviation"] = manifest.deviation;
  json["settings"] = settings_json(manifest.settings);
  json["data_fingerprint"] = utf8_of_bytes(manifest.data_fingerprint);
  json["optimizer"] = utf8_of_bytes(manifest.optimizer);
  json["optimizer_scalars"] = numbers(manifest.optimizer_scalars);
  json["lr_position"] = manifest.lr_position;
  json["metrics"] = numbers(manifest.metrics);
  json["files"] = files_json(manifest.files);
  std::string text = json.dump(2);
  text.resize(text.size() - 2);  // the line break and the last brace come after the checksum
  return text + std::string(kTailStart) + checksum_of(text) + std::string(kTailEnd);
}

Manifest parse_manifest(std::string_view text, const std::string& path) {
  const Json json = parse_json(text, path);
  check_format(json, path);
  check_checksum(text, path);
  try {
    Manifest manifest = read_fields(json);
    check_file_names(manifest, path);
    return manifest;
  } catch (const Json::exception& error) {
    fail(path, fmt::format("not as expected: {}", excerpt(error.what())));
  }
}

}  // namespace convoy
