#include "engine/data/open_dataset.h"

#include "tests/engine/data/data_files.h"
#include "tests/support/catch.h"
#include "tests/support/expect_error.h"

using namespace convoy;
using namespace convoy::testing;

namespace {

DataPair open(const std::string& text, const DataOptions& options = {}) {
  return open_data(parse_data_spec(text), options);
}

}  // namespace

TEST_CASE("data spec: all forms") {
  CHECK(parse_data_spec("fashion-mnist").folder == "/usr/share/datasets/fashion-mnist");
  CHECK(parse_data_spec("fashion-mnist:/x").folder == "/x");
  CHECK(parse_data_spec("cifar10:a:b").folder == "a:b");
  CHECK(parse_data_spec("cifar10:x").kind == DataKind::cifar10);
  CHECK(parse_data_spec("folder:x").kind == DataKind::folder);
  CHECK(parse_data_spec("some/path").folder == "some/path");
  CHECK(parse_data_spec("./path:with").kind == DataKind::folder);
  CHECK(parse_data_spec("synthetic").count == 1000);
  CHECK(parse_data_spec("synthetic:12").count == 12);
}

TEST_CASE("data spec: everything else is refused") {
  auto fails = [](const std::string& text, std::string_view part) {
    expect_error(ErrorKind::usage, {"--data", part}, [&] { parse_data_spec(text); });
  };
  fails("fashon-mnist", "neither a folder nor a known kind");
  fails("mnist:/a/b", "neither a folder nor a known kind");
  fails("", "fashion-mnist[:DIR]");
  fails("cifar10", "cifar10:DIR");
  fails("folder:", "folder:DIR");
  fails("synthetic:", "1 to");
  fails("synthetic:0", "1 to");
  fails("synthetic:-3", "1 to");
  fails("synthetic:12x", "12x");
  fails("synthetic:99999999999999999999", "1 to");
}

TEST_CASE("open data: Fashion-MNIST as Debian installs it") {
  DataPair pair = open("fashion-mnist");
  CHECK(pair.train->size() == 60000);
  CHECK(pair.validation->size() == 10000);
  CHECK(pair.classes == 10);
  CHECK(pair.train->mean()[0] == 0.2860f);
  CHECK(pair.train->deviation()[2] == 0.3530f);
  // The first ten labels of the set, and the sum of all pixels of its first image (numpy).
  std::vector<std::int64_t> labels;
  for (int i = 0; i < 10; ++i) labels.push_back(pair.train->label(i));
  CHECK(labels == std::vector<std::int64_t>{9, 0, 0, 3, 0, 2, 7, 2, 5, 5});
  std::int64_t sum = 0;
  for (std::uint8_t v : pair.train->read(0).pixels) sum += v;
  CHECK(sum == 3 * 76247);
}

TEST_CASE("open data: what is absent is named") {
  TemporaryFolder folder;
  expect_error(ErrorKind::data, {"/absent", "dataset-fashion-mnist"},
               [&] { open("fashion-mnist:" + folder / "absent"); });
  expect_error(ErrorKind::data, {"/absent", "no such folder"},
               [&] { open("cifar10:" + folder / "absent"); });
  expect_error(ErrorKind::data, {"/absent", "no such folder"}, [&] { open(folder / "absent"); });
}

TEST_CASE("open data: the number of classes is held against the labels") {
  TemporaryFolder folder;
  for (const char* name : {"train/a/1.png", "train/b/1.png", "train/c/1.png", "val/a/1.png",
                           "val/b/1.png", "val/c/1.png"}) {
    put_png(folder, name);
  }
  DataOptions options;
  options.classes = 2;
  expect_error(ErrorKind::data, {"train/c/1.png", "label 2", "0..1"},
               [&] { open(folder.path(), options); });
  options.classes = 5;
  DataPair pair = open("folder:" + folder.path(), options);
  CHECK(pair.classes == 5);
  CHECK(any_holds(pair.notes, "5 classes asked for, the data have 3"));
  options.classes = 0;
  pair = open(folder.path(), options);
  CHECK(pair.classes == 3);
  CHECK(pair.notes.empty());
}

TEST_CASE("open data: an idx label of 255 is found on opening") {
  TemporaryFolder folder;
  for (const char* prefix : {"train", "t10k"}) {
    put_file(folder, std::string(prefix) + "-images-idx3-ubyte",
             idx_bytes({2051, 3, 2, 2}, counted(12)));
    put_file(folder, std::string(prefix) + "-labels-idx1-ubyte", idx_bytes({2049, 3}, {1, 255, 0}));
  }
  expect_error(ErrorKind::data, {"train-labels-idx1-ubyte record 1", "255", "0..9"},
               [&] { open("fashion-mnist:" + folder.path()); });
  DataOptions options;
  options.classes = 256;
  CHECK(open("fashion-mnist:" + folder.path(), options).train->class_names().size() == 256);
}

TEST_CASE("open data: limit, synthetic images and rows") {
  DataOptions options;
  options.limit = 22;
  options.image_size = 8;
  DataPair pair = open("synthetic:50", options);
  CHECK(pair.train->size() == 22);
  CHECK(pair.validation->size() == 5);
  CHECK(pair.classes == 10);
  CHECK(pair.train->read(0).width == 8);
  CHECK(pair.train->read(0).pixels != pair.validation->read(0).pixels);
  options.limit = 51;
  CHECK(any_holds(open("synthetic:50", options).notes, "has only 50"));
  options = {};
  options.samples = SampleKind::rows;
  options.features = 10;
  options.targets = 5;
  pair = open("synthetic:20", options);
  CHECK(pair.train->kind() == SampleKind::rows);
  CHECK(pair.train->targets() == 5);
  expect_error(ErrorKind::usage, {"fashion-mnist", "rows", "synthetic"},
               [&] { open("fashion-mnist", options); });
}

TEST_CASE("open data: the fingerprint covers both sets and the seed") {
  DataOptions options;
  std::string before = open("synthetic:20", options).fingerprint();
  CHECK(before == open("synthetic:20", options).fingerprint());
  CHECK(before != open("synthetic:21", options).fingerprint());
  options.seed = 1;
  CHECK(before != open("synthetic:20", options).fingerprint());
}
