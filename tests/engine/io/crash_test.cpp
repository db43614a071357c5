// Crash points of a save: a helper process saves a tiny checkpoint over older ones while a
// preloaded library ends it, or makes a call fail, at each system call in turn. What is found
// afterwards is the old state or the new one, by hash; the next save cleans up.
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <sstream>

#include "engine/io/checkpoint.h"
#include "kernels/base/error.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tiny_checkpoint.h"

using namespace convoy;
using namespace convoy::testing;
namespace fs = std::filesystem;

namespace {

constexpr int kKilled = 99;
constexpr int kResource = static_cast<int>(ErrorKind::resource);

using Environment = std::vector<std::string>;

struct Outcome {
  int code;
  std::string said;
};

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

/// Runs the helper; its stderr goes into a file in `scratch`.
Outcome run_helper(const TemporaryFolder& scratch, std::vector<std::string> words,
                   Environment environment) {
  words.insert(words.begin(), CONVOY_CHECKPOINT_HELPER);
  const std::string said = scratch / "stderr";
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 2, said.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
  pid_t child = 0;
  const int error = posix_spawn(&child, CONVOY_CHECKPOINT_HELPER, &actions, nullptr,
                                pointers(words).data(), pointers(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  REQUIRE(error == 0);
  int status = 0;
  ::waitpid(child, &status, 0);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), read_file(said)};
}

/// Folder with older checkpoints, the save to be disturbed, and how to see what came of it.
class Scene {
 public:
  /// Steps 1 and 2 are there; `step` is saved with `value`.
  Scene(int step, int value) : step_(step), value_(value) {
    for (int old : {1, 2}) save_checkpoint(folder_ / "before", old, tiny_checkpoint(old));
  }

  std::string before() const { return folder_ / "before"; }
  std::string dir() const { return folder_ / "run"; }

  Outcome save(const std::string& mode, long at, const Environment& more = {}) {
    fs::remove_all(dir());
    fs::copy(before(), dir(), fs::copy_options::recursive | fs::copy_options::copy_symlinks);
    // Files that look changed since are read again, so each save makes the same calls.
    const auto long_ago = fs::file_time_type::clock::now() - std::chrono::hours(24);
    for (int old : {1, 2}) {
      fs::last_write_time(fmt::format("{}/step-{}/manifest.json", dir(), old), long_ago);
    }
    return save_step(step_, value_, mode, at, more);
  }
  Outcome next_save() { return save_step(9, 9, "count", 0); }

  /// The calls of an undisturbed save, one line each, paths without the folder.
  std::vector<std::string> calls() {
    fs::remove(folder_ / "log");
    save("count", 0, {fmt::format("FAULT_LOG={}/log", folder_.path())});
    std::istringstream log(read_file(folder_ / "log"));
    std::vector<std::string> lines;
    for (std::string line; std::getline(log, line);) {
      for (std::size_t at; (at = line.find(dir())) != line.npos;) {
        line = fmt::format("{}D{}", line.substr(0, at), line.substr(at + dir().size()));
      }
      lines.push_back(line);
    }
    return lines;
  }

  /// Value of the newest valid checkpoint, every hash of it checked; 0 if there is none.
  int newest_value() const {
    const NewestCheckpoint newest = find_newest(dir());
    if (!newest.folder) return 0;
    const CheckpointContent found = load_checkpoint(*newest.folder);
    const auto value = static_cast<int>(found.manifest.epoch);
    const CheckpointContent expected = tiny_checkpoint(value);
    const bool equal = weights_hash(found.model) == weights_hash(expected.model) &&
                       weights_hash(found.optimizer) == weights_hash(expected.optimizer) &&
                       found.model == expected.model && found.optimizer == expected.optimizer;
    return equal ? value : -1;
  }
  int leftovers() const {
    int count = 0;
    for (const auto& entry : fs::directory_iterator(dir())) {
      count += entry.path().filename().string().starts_with(".saving-");
    }
    return count;
  }
  int whole_ones() const {
    int count = 0;
    for (const auto& entry : fs::directory_iterator(dir())) {
      if (!entry.is_directory() || entry.is_symlink()) continue;
      try {
        verify_checkpoint(entry.path());
        ++count;
      } catch (const Error&) {
      }
    }
    return count;
  }
  const TemporaryFolder& folder() const { return folder_; }

 private:
  Outcome save_step(int step, int value, const std::string& mode, long at,
                    const Environment& more = {}) {
    Environment environment{"LD_PRELOAD=" CONVOY_FAULT_SHIM, "FAULT_MODE=" + mode,
                            fmt::format("FAULT_AT={}", at)};
    environment.insert(environment.end(), more.begin(), more.end());
    return run_helper(folder_, {"save", dir(), std::to_string(step), std::to_string(value)},
                      environment);
  }

  TemporaryFolder folder_;
  int step_;
  int value_;
};

/// After a disturbed save: the old state or the new one, and a next save that cleans up.
void check_aftermath(Scene& scene, int old_value, int new_value) {
  const int value = scene.newest_value();
  INFO("newest value " << value);
  CHECK((value == old_value || value == new_value));
  CHECK(scene.whole_ones() >= 1);
  const Outcome next = scene.next_save();
  INFO(next.said);
  CHECK(next.code == 0);
  CHECK(scene.newest_value() == 9);
  CHECK(scene.leftovers() == 0);
}

/// Ends the process at each call of the save.
void kill_everywhere(Scene& scene, const std::string& mode, int old_value, int new_value) {
  const auto count = static_cast<long>(scene.calls().size());
  int killed = 0;
  for (long at = 1; at <= count; ++at) {
    const Outcome outcome = scene.save(mode, at);
    INFO(mode << " at call " << at << ", code " << outcome.code << ", " << outcome.said);
    killed += outcome.code == kKilled;
    CHECK((outcome.code == kKilled || (mode == "torn" && outcome.code == 0)));
    check_aftermath(scene, old_value, new_value);
  }
  INFO(mode << ": " << killed << " of " << count);
  CHECK((mode == "torn" ? killed >= 5 : killed == count));
  CHECK(scene.save(mode, count + 1).code == 0);
}

/// Makes each call of the save fail with `error`.
void fail_everywhere(Scene& scene, int error, int old_value, int new_value) {
  const std::string mode = fmt::format("errno:{}", error);
  const auto count = static_cast<long>(scene.calls().size());
  int failed = 0;
  for (long at = 1; at <= count; ++at) {
    const Outcome outcome = scene.save(mode, at);
    INFO(mode << " at call " << at << ", code " << outcome.code << ", " << outcome.said);
    CHECK((outcome.code == 0 || outcome.code == kResource));
    if (outcome.code != 0) {
      ++failed;
      CHECK(scene.leftovers() == 0);
      CHECK(std::count(outcome.said.begin(), outcome.said.end(), '\n') == 1);
    } else {
      CHECK(scene.newest_value() == new_value);
    }
    check_aftermath(scene, old_value, new_value);
  }
  CHECK(failed >= 15);
  CHECK(scene.save(mode, count + 1).code == 0);
}

}  // namespace

TEST_CASE("crash: a save makes its calls in the one safe order", "[io][crash]") {
  Scene scene(3, 3);
  std::vector<std::string> order;
  for (const std::string& line : scene.calls()) {
    if (line.starts_with("fsync") || line.starts_with("rename")) order.push_back(line);
  }
  CHECK(order == std::vector<std::string>{
                     "fsync D/.saving-step-3/model.safetensors",
                     "fsync D/.saving-step-3/optimizer.safetensors",
                     "fsync D/.saving-step-3/manifest.json.tmp",
                     "rename D/.saving-step-3/manifest.json.tmp D/.saving-step-3/manifest.json",
                     "fsync D/.saving-step-3",
                     "rename D/.saving-step-3 D/step-3",
                     "fsync D",
                     "rename D/.saving-last D/last",
                     "rename D/step-1 D/.saving-old-step-1",
                     "fsync D",
                 });
}

TEST_CASE("crash: killed at each call, old or new state", "[io][crash]") {
  Scene scene(3, 3);
  kill_everywhere(scene, "kill", 2, 3);
}

TEST_CASE("crash: killed within each write", "[io][crash]") {
  Scene scene(3, 3);
  kill_everywhere(scene, "torn", 2, 3);
}

TEST_CASE("crash: killed at each call, what was not synced is lost", "[io][crash]") {
  Scene scene(3, 3);
  kill_everywhere(scene, "drop", 2, 3);
}

TEST_CASE("crash: the same over a damaged namesake", "[io][crash]") {
  Scene scene(2, 7);
  fs::resize_file(scene.before() + "/step-2/model.safetensors", 20);
  kill_everywhere(scene, "drop", 1, 7);
  fail_everywhere(scene, EIO, 1, 7);
}

TEST_CASE("crash: the same over another state of the same step", "[io][crash]") {
  Scene scene(2, 7);
  kill_everywhere(scene, "drop", 2, 7);
  fail_everywhere(scene, EIO, 2, 7);
}

TEST_CASE("crash: each call fails for want of room", "[io][crash]") {
  Scene scene(3, 3);
  fail_everywhere(scene, ENOSPC, 2, 3);
}

TEST_CASE("crash: each call fails with an input/output error", "[io][crash]") {
  Scene scene(3, 3);
  fail_everywhere(scene, EIO, 2, 3);
}

TEST_CASE("crash: interrupted calls and short counts do no harm", "[io][crash]") {
  Scene scene(3, 3);
  const auto count = static_cast<long>(scene.calls().size());
  for (const std::string& mode : {fmt::format("errno:{}", EINTR), std::string("short")}) {
    for (long at = 1; at <= count; ++at) {
      const Outcome outcome = scene.save(mode, at);
      INFO(mode << " at call " << at << ": " << outcome.said);
      CHECK(outcome.code == 0);
      CHECK(outcome.said.empty());
      CHECK(scene.newest_value() == 3);
      CHECK(scene.leftovers() == 0);
    }
  }
}

// The JSON library allocates in destructors: there a failure ends the process (134, SIGABRT), which
// must do as little harm as any other end.
TEST_CASE("crash: the n-th allocation fails", "[io][crash]") {
  Scene scene(3, 3);
  int failed = 0;
  for (int at = 1;; at += at < 200 ? 1 : 7) {
    const Outcome outcome = scene.save("count", 0, {fmt::format("FAULT_ALLOCATION={}", at)});
    INFO("allocation " << at << ", code " << outcome.code << ": " << outcome.said);
    if (outcome.code == 97) break;
    failed += outcome.code != 0;
    const bool aborted = outcome.code == 128 + SIGABRT;
    CHECK((outcome.code == 0 || outcome.code == 98 || outcome.code == kResource || aborted));
    CHECK((outcome.code != 0 || scene.newest_value() == 3));
    CHECK((aborted || scene.newest_value() == 3 || scene.leftovers() == 0));
    check_aftermath(scene, 2, 3);
    REQUIRE(at < 100'000);
  }
  CHECK(failed > 100);
}

TEST_CASE("crash: the disk is full after some bytes", "[io][crash]") {
  Scene scene(3, 3);
  for (long budget : {0, 1, 200, 400, 700, 1000}) {
    const Outcome outcome = scene.save("budget", budget);
    INFO(budget << ": " << outcome.said);
    CHECK(outcome.code == kResource);
    for (const char* part : {"resource: cannot save", "run/step-3", "No space left on device",
                             "needed 1", "bytes, free "}) {
      INFO(part);
      CHECK(outcome.said.find(part) != std::string::npos);
    }
    CHECK(scene.newest_value() == 2);
    CHECK(scene.whole_ones() == 2);
    CHECK(scene.leftovers() == 0);
  }
  CHECK(scene.save("budget", 100'000).code == 0);
}

TEST_CASE("crash: bad files take no memory beyond their size and 64 MiB", "[io][crash]") {
  TemporaryFolder folder;
  const auto growth = [&](const std::string& header, std::uint64_t length, std::uint64_t size,
                          int code) {
    std::string start;
    for (int i = 0; i < 8; ++i) start += static_cast<char>(length >> 8 * i & 0xFF);
    write_file(folder / "bad", start + header);
    fs::resize_file(folder / "bad", size);
    const Outcome outcome = run_helper(folder, {"read", folder / "bad"}, {});
    CHECK(outcome.code == code);
    const long limit_kib = static_cast<long>(size / 1024) + 64 * 1024;
    INFO(outcome.said << " KiB of " << limit_kib);
    CHECK(std::stol(outcome.said) <= limit_kib);
  };
  std::string entries = "{";
  for (int i = 0; i < 200'000; ++i) {
    entries += fmt::format(R"({}"t{}":{{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})",
                           i ? "," : "", i);
  }
  growth(entries + "}", entries.size() + 1, entries.size() + 9, 4);
  growth("{", 1ull << 63, 100, 4);
  growth("{", 100'000'001, 100, 4);
  growth("{", 90'000'000, 90'000'008, 4);
  growth(R"({"a":{"dtype":"F32","shape":[1099511627776],"data_offsets":[0,4398046511104]}})", 80,
         1'000'000, 4);
  std::string shape = R"({"a":{"dtype":"F32","shape":[1)";
  for (int i = 0; i < 5'000'000; ++i) shape += ",1";
  growth(shape, shape.size(), shape.size() + 8, 4);
  const std::string name(30'000'000, 'n');
  const std::string whole =
      fmt::format(R"({{"{}":{{"dtype":"U8","shape":[9],"data_offsets":[0,9]}}}})", name);
  growth(whole, whole.size(), whole.size() + 17, 0);
}
