#include "engine/io/checkpoint.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <set>

#include "engine/io/safetensors.h"
#include "tests/support/expect_error.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tiny_checkpoint.h"

using namespace convoy;
using namespace convoy::testing;
namespace fs = std::filesystem;

namespace {

std::set<std::string> names_in(const std::string& dir) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(dir)) names.insert(entry.path().filename());
  return names;
}

using Names = std::set<std::string>;

void damage_file(const std::string& path) {
  std::string bytes = read_file(path);
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  write_file(path, bytes);
}

// Bytes that this process has read from files so far.
std::uint64_t bytes_read() {
  std::ifstream file("/proc/self/io");
  std::string key;
  std::uint64_t value = 0;
  file >> key >> value;
  REQUIRE(key == "rchar:");
  return value;
}

bool mentions(const std::vector<std::string>& notes, std::string_view part) {
  for (const std::string& note : notes) {
    if (note.find(part) != note.npos) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("checkpoint: what is saved is loaded", "[io][checkpoint]") {
  TemporaryFolder folder;
  const CheckpointContent content = tiny_checkpoint(5);
  const SavedCheckpoint saved = save_checkpoint(folder / "new/run", 5, content);
  CHECK(saved.folder == folder / "new/run/step-5");
  CHECK(saved.notes.empty());
  CHECK(names_in(folder / "new/run") == Names{"step-5", "last"});
  CHECK(names_in(saved.folder) ==
        Names{"model.safetensors", "optimizer.safetensors", "manifest.json"});

  const CheckpointContent loaded = load_checkpoint(saved.folder);
  CHECK(loaded.model == content.model);
  CHECK(loaded.optimizer == content.optimizer);
  CHECK(loaded.manifest.step == 5);
  CHECK(loaded.manifest.convoy_version == CONVOY_VERSION);
  CHECK(loaded.manifest.epoch == 5);
  CHECK(loaded.manifest.files.size() == 2);
}

TEST_CASE("checkpoint: its size is known before the save", "[io][checkpoint]") {
  TemporaryFolder folder;
  CheckpointContent content = tiny_checkpoint(5);
  content.manifest.step = 5;
  save_checkpoint(folder.path(), 5, content);
  std::uint64_t size = 0;
  for (const auto& entry : fs::directory_iterator(folder / "step-5")) size += entry.file_size();
  CHECK(checkpoint_size(content) == size);
}

TEST_CASE("checkpoint: the model alone is usable elsewhere", "[io][checkpoint]") {
  TemporaryFolder folder;
  save_checkpoint(folder.path(), 1, tiny_checkpoint(1));
  const SafetensorsFile file = read_safetensors(folder / "last/model.safetensors");
  CHECK(file.tensors == tiny_checkpoint(1).model);
  CHECK(file.metadata.at("format") == "pt");
}

TEST_CASE("checkpoint: the newest ones are kept, and the best", "[io][checkpoint]") {
  TemporaryFolder folder;
  for (int step : {9, 10, 100}) save_checkpoint(folder.path(), step, tiny_checkpoint(step));
  CHECK(names_in(folder.path()) == Names{"step-10", "step-100", "last"});
  mark_best(folder.path(), 10);
  for (int step : {101, 102}) save_checkpoint(folder.path(), step, tiny_checkpoint(step));
  CHECK(names_in(folder.path()) == Names{"step-10", "step-101", "step-102", "last", "best"});
  CHECK(fs::read_symlink(folder / "last") == "step-102");
  CHECK(load_checkpoint(folder / "best").manifest.step == 10);
  mark_best(folder.path(), 102);
  save_checkpoint(folder.path(), 103, tiny_checkpoint(103), 1);
  CHECK(names_in(folder.path()) == Names{"step-102", "step-103", "last", "best"});
}

TEST_CASE("checkpoint: damaged ones do not count as kept", "[io][checkpoint]") {
  TemporaryFolder folder;
  for (int step : {1, 2}) save_checkpoint(folder.path(), step, tiny_checkpoint(step));
  damage_file(folder / "step-2/model.safetensors");
  save_checkpoint(folder.path(), 3, tiny_checkpoint(3));
  CHECK(names_in(folder.path()) == Names{"step-1", "step-2", "step-3", "last"});
}

TEST_CASE("checkpoint: kept ones are not read again at each save", "[io][checkpoint]") {
  TemporaryFolder folder;
  constexpr int kCount = 1 << 20;  // 4 MiB each of weights and of state
  save_checkpoint(folder.path(), 1, tiny_checkpoint(1, kCount));
  // A clock that ticks slowly cannot tell this save's files from later changes.
  fs::last_write_time(folder / "step-1/manifest.json",
                      fs::file_time_type::clock::now() + std::chrono::hours(1));
  const std::uint64_t before = bytes_read();
  save_checkpoint(folder.path(), 2, tiny_checkpoint(2));
  CHECK(bytes_read() - before < 1 << 20);
  CHECK(names_in(folder.path()) == Names{"step-1", "step-2", "last"});
}

TEST_CASE("checkpoint: what was moved aside goes with its time", "[io][checkpoint]") {
  TemporaryFolder folder;
  for (int value : {4, 5}) save_checkpoint(folder.path(), 4, tiny_checkpoint(value));
  for (const char* name : {"step-4.aside-x", "step-4.aside-", "other.aside-1"}) {
    write_file(folder / name, "of somebody else");
  }
  const Names others{"step-4.aside-x", "step-4.aside-", "other.aside-1", "last"};
  const auto with = [&](Names names) {
    names.insert(others.begin(), others.end());
    return names;
  };
  save_checkpoint(folder.path(), 6, tiny_checkpoint(6));
  CHECK(names_in(folder.path()) == with({"step-4", "step-4.aside-1", "step-6"}));
  save_checkpoint(folder.path(), 7, tiny_checkpoint(7));
  CHECK(names_in(folder.path()) == with({"step-6", "step-7"}));
}

TEST_CASE("checkpoint: newer ones are never pruned by an older save", "[io][checkpoint]") {
  TemporaryFolder folder;
  for (int step : {5, 6}) save_checkpoint(folder.path(), step, tiny_checkpoint(step));
  save_checkpoint(folder.path(), 3, tiny_checkpoint(3), 1);
  CHECK(names_in(folder.path()) == Names{"step-3", "step-5", "step-6", "last"});
}

TEST_CASE("checkpoint: the same state twice is one checkpoint", "[io][checkpoint]") {
  TemporaryFolder folder;
  for (int i = 0; i < 2; ++i) {
    CHECK(save_checkpoint(folder.path(), 4, tiny_checkpoint(4)).notes.empty());
  }
  CHECK(names_in(folder.path()) == Names{"step-4", "last"});
}

TEST_CASE("checkpoint: a damaged namesake is moved aside", "[io][checkpoint]") {
  TemporaryFolder folder;
  save_checkpoint(folder.path(), 4, tiny_checkpoint(4));
  damage_file(folder / "step-4/optimizer.safetensors");
  const std::string damaged = read_file(folder / "step-4/optimizer.safetensors");
  const SavedCheckpoint saved = save_checkpoint(folder.path(), 4, tiny_checkpoint(4));
  CHECK(mentions(saved.notes, "moved aside"));
  CHECK(mentions(saved.notes, "checksum"));
  CHECK(names_in(folder.path()) == Names{"step-4", "step-4.aside-1", "last"});
  CHECK(read_file(folder / "step-4.aside-1/optimizer.safetensors") == damaged);
  CHECK(load_checkpoint(folder / "step-4").model == tiny_checkpoint(4).model);
}

TEST_CASE("checkpoint: another state of the same step is kept aside", "[io][checkpoint]") {
  TemporaryFolder folder;
  for (int value : {4, 5, 6}) save_checkpoint(folder.path(), 4, tiny_checkpoint(value));
  CHECK(names_in(folder.path()) == Names{"step-4", "step-4.aside-1", "step-4.aside-2", "last"});
  CHECK(load_checkpoint(folder / "step-4").model == tiny_checkpoint(6).model);
  CHECK(load_checkpoint(folder / "step-4.aside-1").model == tiny_checkpoint(4).model);
}

TEST_CASE("checkpoint: what a state that is kept aside differs in", "[io][checkpoint]") {
  TemporaryFolder folder;
  CheckpointContent content = tiny_checkpoint(4);
  content.manifest.settings["batch"] = "8";
  save_checkpoint(folder.path(), 4, content);
  CHECK(save_checkpoint(folder.path(), 4, content).notes.empty());
  content.manifest.settings["batch"] = "4";
  content.manifest.settings["cut"] = "\"layer3\"";
  CHECK(mentions(save_checkpoint(folder.path(), 4, content).notes,
                 "its weights are the same, but it has other settings: --batch 8 (now 4), --cut "
                 "unset (now \"layer3\")"));
  content.manifest.metrics["best"] = 0.5;
  CHECK(mentions(save_checkpoint(folder.path(), 4, content).notes, "other figures of the run"));
  content.model = tiny_checkpoint(5).model;
  CHECK(mentions(save_checkpoint(folder.path(), 4, content).notes, "another state"));
}

TEST_CASE("checkpoint: a file in the way is moved aside too", "[io][checkpoint]") {
  TemporaryFolder folder;
  write_file(folder / "step-4", "a file");
  save_checkpoint(folder.path(), 4, tiny_checkpoint(4));
  CHECK(read_file(folder / "step-4.aside-1") == "a file");
  CHECK(load_checkpoint(folder / "step-4").manifest.step == 4);
}

TEST_CASE("checkpoint: leftovers are ignored and cleaned", "[io][checkpoint]") {
  TemporaryFolder folder;
  save_checkpoint(folder.path(), 1, tiny_checkpoint(1));
  fs::copy(folder / "step-1", folder / ".saving-step-2");
  fs::create_directory(folder / ".saving-old-step-0");
  CHECK(find_newest(folder.path()).folder == folder / "step-1");
  save_checkpoint(folder.path(), 3, tiny_checkpoint(3));
  CHECK(names_in(folder.path()) == Names{"step-1", "step-3", "last"});
}

TEST_CASE("checkpoint: the newest valid one is found, the others with reasons",
          "[io][checkpoint]") {
  TemporaryFolder folder;
  CHECK_FALSE(find_newest(folder / "absent").folder);
  CHECK_FALSE(find_newest(folder.path()).folder);
  for (int step : {2, 30, 4, 500}) {
    save_checkpoint(folder.path(), step, tiny_checkpoint(step), 9);
  }
  CHECK(find_newest(folder.path()).folder == folder / "step-500");
  damage_file(folder / "step-500/model.safetensors");
  fs::remove(folder / "step-30/manifest.json");
  write_file(folder / "notes.txt", "");
  for (const char* name :
       {"step-007", "step--1", "step-", "step-9x", "step-99999999999999999999"}) {
    fs::create_directory(folder / name);
  }
  fs::create_symlink("step-500", folder / "step-600");
  const NewestCheckpoint newest = find_newest(folder.path());
  CHECK(newest.folder == folder / "step-4");
  REQUIRE(newest.passed_over.size() == 2);
  CHECK(newest.passed_over[0].find("step-500/model.safetensors: damaged") != std::string::npos);
  CHECK(newest.passed_over[1].find("step-30/manifest.json: No such file") != std::string::npos);
}

TEST_CASE("checkpoint: an explicit folder never falls back", "[io][checkpoint]") {
  TemporaryFolder folder;
  for (int step : {1, 2}) save_checkpoint(folder.path(), step, tiny_checkpoint(step));
  damage_file(folder / "step-2/optimizer.safetensors");
  expect_error(ErrorKind::checkpoint, {"step-2/optimizer.safetensors"},
               [&] { load_checkpoint(folder / "step-2"); });
  expect_error(ErrorKind::checkpoint, {"step-3/manifest.json", "No such file"},
               [&] { load_checkpoint(folder / "step-3"); });
  expect_error(ErrorKind::checkpoint, {"manifest.json"}, [&] { load_checkpoint(folder.path()); });
}

TEST_CASE("checkpoint: files that are missing, longer or unlisted", "[io][checkpoint]") {
  TemporaryFolder folder;
  save_checkpoint(folder.path(), 1, tiny_checkpoint(1));
  const std::string model = folder / "step-1/model.safetensors";
  const std::string bytes = read_file(model);
  write_file(model, bytes + '\0');
  expect_error(ErrorKind::checkpoint, {"model.safetensors", "bytes long, the manifest says"},
               [&] { load_checkpoint(folder / "step-1"); });
  fs::remove(model);
  expect_error(ErrorKind::checkpoint, {"model.safetensors", "No such file"},
               [&] { load_checkpoint(folder / "step-1"); });
  const std::string path = folder / "step-1/manifest.json";
  Manifest manifest = parse_manifest(read_file(path), path);
  std::swap(manifest.files[0].name, manifest.files[1].name);
  manifest.files.pop_back();
  write_file(path, manifest_text(manifest));
  expect_error(ErrorKind::checkpoint, {"lists no file model.safetensors"},
               [&] { load_checkpoint(folder / "step-1"); });
}

TEST_CASE("checkpoint: files of another checkpoint do not pass", "[io][checkpoint]") {
  TemporaryFolder folder;
  for (int step : {1, 2}) save_checkpoint(folder.path(), step, tiny_checkpoint(step));
  fs::copy(folder / "step-1/model.safetensors", folder / "step-2/model.safetensors",
           fs::copy_options::overwrite_existing);
  expect_error(ErrorKind::checkpoint, {"step-2/model.safetensors", "checksum"},
               [&] { load_checkpoint(folder / "step-2"); });
}

TEST_CASE("checkpoint: a folder that holds a run is told", "[io][checkpoint]") {
  TemporaryFolder folder;
  CHECK_FALSE(holds_run(folder / "absent"));
  CHECK_FALSE(holds_run(folder.path()));
  write_file(folder / "metrics.jsonl", "");
  fs::create_directory(folder / ".saving-step-3");
  CHECK_FALSE(holds_run(folder.path()));
  fs::create_directory(folder / "step-3");
  CHECK(holds_run(folder.path()));
  write_file(folder / "file", "");
  expect_error(ErrorKind::checkpoint, {"/file"}, [&] { holds_run(folder / "file"); });
}

TEST_CASE("checkpoint: room is asked for before the run", "[io][checkpoint]") {
  TemporaryFolder folder;
  CHECK(check_room(folder.path(), 1).empty());
  CHECK(check_room(folder / "not/yet/there", 1).empty());
  const std::uint64_t free = free_bytes(folder.path());
  REQUIRE(free > 1'000'000);
  const std::string warning = check_room(folder.path(), free / 2);
  CHECK(warning.find("room for fewer than 3") != warning.npos);
  CHECK(warning.find(std::to_string(free / 2)) != warning.npos);
  expect_error(ErrorKind::resource, {folder.path(), "1152921504606846976", "free"},
               [&] { check_room(folder.path(), 1ull << 60); });
  CHECK_FALSE(fs::exists(folder / "not"));
}

TEST_CASE("checkpoint: one run at a time holds a folder", "[io][checkpoint]") {
  TemporaryFolder folder;
  {
    CheckpointLock lock(folder / "run");
    expect_error(ErrorKind::usage, {folder / "run", fmt::format("pid {}", ::getpid())},
                 [&] { CheckpointLock second(folder / "run"); });
    save_checkpoint(folder / "run", 1, tiny_checkpoint(1));
    CHECK(names_in(folder / "run") == Names{".lock", "step-1", "last"});
  }
  CHECK_NOTHROW(CheckpointLock(folder / "run"));
}

TEST_CASE("checkpoint: the lock goes with its process", "[io][checkpoint]") {
  TemporaryFolder folder;
  int ready[2];
  REQUIRE(::pipe(ready) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    CheckpointLock lock(folder.path());
    (void)!::write(ready[1], "x", 1);
    ::pause();
  }
  char byte;
  REQUIRE(::read(ready[0], &byte, 1) == 1);
  expect_error(ErrorKind::usage, {fmt::format("pid {}", child)},
               [&] { CheckpointLock second(folder.path()); });
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  CHECK_NOTHROW(CheckpointLock(folder.path()));
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST_CASE("checkpoint: the file size limit is a resource error, not a signal", "[io][checkpoint]") {
  TemporaryFolder folder;
  save_checkpoint(folder.path(), 1, tiny_checkpoint(1));
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  for (rlim_t limit : {0, 100, 400, 670}) {
    const rlimit small{limit, before.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
    std::string text;
    try {
      save_checkpoint(folder.path(), 2, tiny_checkpoint(2, 100));
    } catch (const Error& error) {
      text = describe(error);
    }
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &before) == 0);
    INFO(text);
    INFO(limit);
    CHECK(text.find("resource: cannot save " + folder / "step-2") != text.npos);
    CHECK(text.find("File too large") != text.npos);
    CHECK(text.find("needed") != text.npos);
    CHECK(text.find("free") != text.npos);
    CHECK(names_in(folder.path()) == Names{"step-1", "last"});
    CHECK(load_checkpoint(folder / "step-1").model == tiny_checkpoint(1).model);
  }
}

TEST_CASE("checkpoint: wrong arguments", "[io][checkpoint]") {
  TemporaryFolder folder;
  expect_error(ErrorKind::usage, {"keep is 0"},
               [&] { save_checkpoint(folder.path(), 1, tiny_checkpoint(1), 0); });
  expect_error(ErrorKind::internal, {"step is -1"},
               [&] { save_checkpoint(folder.path(), -1, tiny_checkpoint(1)); });
  expect_error(ErrorKind::internal, {"step-7"}, [&] { mark_best(folder.path(), 7); });
  write_file(folder / "file", "");
  expect_error(ErrorKind::resource, {"file"},
               [&] { save_checkpoint(folder / "file/run", 1, tiny_checkpoint(1)); });
}
