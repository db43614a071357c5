#include "engine/io/manifest.h"

#include <limits>

#include "engine/io/hash.h"
#include "tests/support/expect_error.h"

using namespace convoy;
using convoy::testing::expect_error;

namespace {

Manifest full_manifest() {
  Manifest manifest;
  manifest.convoy_version = "0.1.0";
  manifest.model = "resnet50";
  manifest.classes = 3;
  manifest.image_size = 224;
  manifest.epoch = 2;
  manifest.images_done = 12345;
  manifest.step = 1LL << 40;
  manifest.seed = std::numeric_limits<std::uint64_t>::max();
  manifest.class_names = {"cat", "caf\xC3\xA9", "bytes\xFF\n"};
  manifest.mean = {0.1, 1.0 / 3, 1e-300};
  manifest.deviation = {1, 2, 3};
  manifest.settings = {
      {"batch", "32"}, {"lr", "0.1"}, {"model", "\"resnet50\""}, {"x", "[1,null]"}};
  manifest.data_fingerprint = "99aa";
  manifest.optimizer = "adamw";
  manifest.optimizer_scalars = {{"beta1_power", 0.9}, {"steps", 7}};
  manifest.lr_position = 99;
  manifest.metrics = {{"best_top1", 0.8125}};
  manifest.files = {{"model.safetensors", 1ull << 40, std::string(32, 'a')}};
  return manifest;
}

/// A manifest text with another body but a right checksum.
std::string resealed(std::string text, std::string_view from, std::string_view to) {
  text.resize(text.rfind(",\n  \"checksum\""));
  const std::size_t at = text.find(from);
  REQUIRE(at != text.npos);
  text.replace(at, from.size(), to);
  return text + ",\n  \"checksum\": \"" + hash128_hex(bytes_of(text)) + "\"\n}\n";
}

void refuse(const std::string& text, std::vector<std::string_view> parts) {
  parts.emplace_back("DIR/manifest.json");
  expect_error(ErrorKind::checkpoint, parts, [&] { parse_manifest(text, "DIR/manifest.json"); });
}

}  // namespace

TEST_CASE("manifest: what is written is read back", "[io][manifest]") {
  const Manifest manifest = full_manifest();
  CHECK(parse_manifest(manifest_text(manifest), "m") == manifest);
  CHECK(parse_manifest(manifest_text(Manifest()), "m") == Manifest());
}

TEST_CASE("manifest: people can read it", "[io][manifest]") {
  const std::string text = manifest_text(full_manifest());
  CHECK(text.starts_with("{\n  \"format\": 1,\n"));
  CHECK(text.find("\n  \"model\": \"resnet50\",\n") != text.npos);
  CHECK(text.find("\n    \"lr\": 0.1,\n") != text.npos);
  CHECK(text.find("\"bytes\\\\xFF\\n\"") != text.npos);
}

TEST_CASE("manifest: every flipped bit and every cut is found", "[io][manifest]") {
  const std::string text = manifest_text(full_manifest());
  int silent = 0;
  for (std::size_t bit = 0; bit < text.size() * 8; ++bit) {
    std::string damaged = text;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ 1 << bit % 8);
    try {
      parse_manifest(damaged, "m");
      ++silent;
    } catch (const Error& error) {
      silent += error.kind() != ErrorKind::checkpoint;
    }
  }
  CHECK(silent == 0);
  for (std::size_t size = 0; size < text.size(); ++size) {
    REQUIRE_THROWS_AS(parse_manifest(text.substr(0, size), "m"), Error);
  }
  refuse(text + "\n", {"does not end in its checksum"});
  refuse(" " + text, {"checksum"});
}

TEST_CASE("manifest: a newer format is said as such", "[io][manifest]") {
  const std::string text = manifest_text(full_manifest());
  refuse(resealed(text, "\"format\": 1", "\"format\": 2"),
         {"format 2", "reads format 1", "a newer Convoy wrote it"});
  refuse(R"({"format": 17, "all": "else"})", {"format 17", "newer"});
  refuse(resealed(text, "\"format\": 1", "\"format\": 0"), {"format 0"});
}

TEST_CASE("manifest: other JSON is refused", "[io][manifest]") {
  refuse("", {"damaged"});
  refuse("[1]", {"no checkpoint manifest"});
  refuse("{}", {"no checkpoint manifest"});
  refuse(R"({"format": "1"})", {"no checkpoint manifest"});
  refuse(R"({"format": 1.5})", {"no checkpoint manifest"});
  refuse(R"({"format": 1})", {"checksum"});
  refuse(std::string(1'000'000, '['), {"nested deeper"});
  refuse(R"({"format": 1, "a": 1, "a": 2})", {"double key 'a'"});
}

TEST_CASE("manifest: fields of another kind are refused", "[io][manifest]") {
  const std::string text = manifest_text(full_manifest());
  refuse(resealed(text, "\"epoch\": 2", "\"epoch\": \"2\""), {"not as expected"});
  refuse(resealed(text, "\"epoch\"", "\"epock\""), {"not as expected", "epoch"});
  refuse(resealed(text, "\"optimizer_scalars\": {", "\"optimizer_scalars\": {\"a\": null,"),
         {"not as expected"});
  for (std::string_view name : {"", ".", "..", "../x", "/etc/passwd", ".hidden"}) {
    refuse(resealed(text, "model.safetensors", name), {"expected a name without path"});
  }
}

TEST_CASE("manifest: numbers that JSON cannot hold are our fault", "[io][manifest]") {
  Manifest manifest = full_manifest();
  manifest.metrics["loss"] = std::numeric_limits<double>::quiet_NaN();
  expect_error(ErrorKind::internal, {"loss", "nan"}, [&] { manifest_text(manifest); });
  manifest = full_manifest();
  manifest.settings["lr"] = "0.1.2";
  expect_error(ErrorKind::internal, {"lr", "0.1.2"}, [&] { manifest_text(manifest); });
}
