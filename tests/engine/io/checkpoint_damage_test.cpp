// Bit damage of a checkpoint on the disk: all of it is found and the file is named.
#include <random>

#include "engine/io/checkpoint.h"
#include "tests/support/expect_error.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tiny_checkpoint.h"

using namespace convoy;
using namespace convoy::testing;

namespace {

/// A checkpoint of three pages of weights, one file of which is damaged over and over.
class Victim {
 public:
  explicit Victim(const char* name) : path_(folder_ / "step-1/" + name) {
    save_checkpoint(folder_.path(), 1, tiny_checkpoint(1, 3000));
    bytes_ = read_file(path_);
  }

  const std::string& bytes() const { return bytes_; }
  std::size_t header_size() const { return bytes_.find('}', bytes_.rfind("data_offsets")) + 2; }

  void flip(std::size_t bit) {
    std::string damaged = bytes_;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ 1 << bit % 8);
    try_damage(damaged);
  }
  /// Counts whether loading takes `damaged` for good or does not name the file.
  void try_damage(const std::string& damaged) {
    write_file(path_, damaged);
    ++tries_;
    silent_ += loads();
    if (tries_ % 64 == 0) silent_ += find_newest(folder_.path()).folder.has_value();
  }
  int silent() const { return silent_; }
  int tries() const { return tries_; }

 private:
  bool loads() const {
    try {
      load_checkpoint(folder_ / "step-1");
      return true;
    } catch (const Error& error) {
      return error.kind() != ErrorKind::checkpoint || error.text().find(path_) == std::string::npos;
    }
  }

  TemporaryFolder folder_;
  std::string path_;
  std::string bytes_;
  int silent_ = 0;
  int tries_ = 0;
};

}  // namespace

TEST_CASE("damage: an untouched checkpoint loads", "[io][damage]") {
  Victim victim("model.safetensors");
  victim.try_damage(victim.bytes());
  CHECK(victim.silent() == 1);
}

TEST_CASE("damage: every bit of the headers and the manifest", "[io][damage]") {
  for (const char* name : {"model.safetensors", "optimizer.safetensors", "manifest.json"}) {
    Victim victim(name);
    const bool tensors = std::string_view(name).ends_with("safetensors");
    const std::size_t size = tensors ? victim.header_size() : victim.bytes().size();
    for (std::size_t bit = 0; bit < size * 8; ++bit) victim.flip(bit);
    INFO(name << ": " << victim.tries() << " bits");
    CHECK(victim.tries() > 500);
    CHECK(victim.silent() == 0);
  }
}

TEST_CASE("damage: a thousand bits anywhere", "[io][damage]") {
  std::mt19937 random(7);
  for (const char* name : {"model.safetensors", "optimizer.safetensors"}) {
    Victim victim(name);
    for (int i = 0; i < 500; ++i) victim.flip(random() % (victim.bytes().size() * 8));
    CHECK(victim.silent() == 0);
  }
}

TEST_CASE("damage: cuts at every 512 bytes, and by one byte", "[io][damage]") {
  for (const char* name : {"model.safetensors", "optimizer.safetensors", "manifest.json"}) {
    Victim victim(name);
    for (std::size_t size = 0; size < victim.bytes().size(); size += 512) {
      victim.try_damage(victim.bytes().substr(0, size));
    }
    victim.try_damage(victim.bytes().substr(0, victim.bytes().size() - 1));
    victim.try_damage(victim.bytes() + '\0');
    CHECK(victim.silent() == 0);
  }
}

TEST_CASE("damage: pages zeroed or swapped", "[io][damage]") {
  constexpr std::size_t kPage = 4096;
  Victim victim("model.safetensors");
  const std::string& bytes = victim.bytes();
  REQUIRE(bytes.size() > 2 * kPage);
  for (std::size_t at = 0; at < bytes.size(); at += kPage) {
    const std::size_t size = std::min(kPage, bytes.size() - at);
    std::string damaged = bytes;
    victim.try_damage(damaged.replace(at, size, std::string(size, '\0')));
  }
  std::string swapped = bytes;
  std::swap_ranges(swapped.begin(), swapped.begin() + kPage, swapped.begin() + kPage);
  victim.try_damage(swapped);
  CHECK(victim.silent() == 0);
}
