#include "engine/data/image_folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include "engine/data/decode_image.h"
#include "engine/data/scan_folder.h"
#include "tests/engine/data/data_files.h"
#include "tests/support/catch.h"
#include "tests/support/expect_error.h"

using namespace convoy;
using namespace convoy::testing;

namespace {

FolderPair open(const TemporaryFolder& folder) {
  return open_image_folder(folder.path(), kDefaultMaxPixels);
}

void link(const std::string& target, const std::string& path) {
  REQUIRE(::symlink(target.c_str(), path.c_str()) == 0);
}

}  // namespace

TEST_CASE("folder: a class absent in val keeps the numbers of the others") {
  TemporaryFolder folder;
  for (const char* name :
       {"train/a/1.png", "train/b/1.png", "train/c/1.png", "val/a/1.png", "val/c/1.png"}) {
    put_png(folder, name);
  }
  bool empty_folder = GENERATE(false, true);
  if (empty_folder) std::filesystem::create_directories(folder / "val/b");
  FolderPair pair = open(folder);
  REQUIRE(pair.validation->size() == 2);
  CHECK(pair.validation->label(0) == 0);
  CHECK(pair.validation->label(1) == 2);
  CHECK(pair.validation->class_names() == std::vector<std::string>{"a", "b", "c"});
  REQUIRE(pair.notes.size() == 1);
  CHECK(any_holds(pair.notes, "warning"));
  CHECK(any_holds(pair.notes, "(b)"));
}

TEST_CASE("folder: classes that only val has, training classes without images") {
  TemporaryFolder folder;
  put_png(folder, "train/a/1.png");
  put_png(folder, "val/a/1.png");
  SECTION("val/d") {
    put_png(folder, "val/d/1.png");
    expect_error(ErrorKind::data, {"val/d", "no such class"}, [&] { open(folder); });
  }
  SECTION("empty train/b") {
    std::filesystem::create_directories(folder / "train/b");
    expect_error(ErrorKind::data, {"train/b", "without an image"}, [&] { open(folder); });
  }
  SECTION("train/b with foreign files only") {
    put_file(folder, "train/b/notes.txt", counted(20, 65));
    expect_error(ErrorKind::data, {"train/b", "without an image"}, [&] { open(folder); });
  }
}

TEST_CASE("folder: hidden and foreign entries are ignored and counted") {
  TemporaryFolder folder;
  put_png(folder, "train/cat/c1.jpg");
  put_png(folder, "train/dog/d1.png");
  put_png(folder, "train/.ipynb_checkpoints/x.png");
  put_file(folder, "train/.DS_Store", counted(10));
  put_file(folder, "train/cat/._c1.jpg", counted(10));
  put_file(folder, "train/cat/Thumbs.db", counted(10));
  put_png(folder, "val/cat/c2.png");
  put_png(folder, "val/dog/d2.png");
  FolderPair pair = open(folder);
  CHECK(pair.train->class_names() == std::vector<std::string>{"cat", "dog"});
  REQUIRE(pair.train->size() == 2);
  CHECK(pair.train->label(0) == 0);
  CHECK(pair.train->label(1) == 1);
  CHECK(pair.notes == std::vector<std::string>{"ignored 4 hidden or foreign entries"});
}

TEST_CASE("folder: classes in the order of bytes") {
  TemporaryFolder folder;
  for (int i = 10; i >= 0; --i) put_png(folder, "train/" + std::to_string(i) + "/x.png");
  put_png(folder, "train/\xC3\xA9/x.png");
  put_png(folder, "train/Z/x.png");
  FolderPair pair = open(folder);
  const std::vector<std::string>& names = pair.train->class_names();
  CHECK(names == std::vector<std::string>{"0", "1", "10", "2", "3", "4", "5", "6", "7", "8", "9",
                                          "Z", "\xC3\xA9"});
  CHECK_FALSE(pair.validation);
  CHECK(any_holds(pair.notes, "no folder val"));
}

TEST_CASE("folder: another class table is refused with the first difference") {
  std::vector<std::string> before = {"a", "b", "c"};
  check_class_names(before, "the checkpoint", before);
  expect_error(ErrorKind::data, {"class 1", "\"x\"", "\"b\"", "the checkpoint"}, [&] {
    check_class_names(before, "the checkpoint", {"a", "x", "c"});
  });
  expect_error(ErrorKind::data, {"class 2", "absent", "\"c\"", "2 and 3"}, [&] {
    check_class_names(before, "the checkpoint", {"a", "b"});
  });
}

TEST_CASE("folder: images without a class folder, no train") {
  TemporaryFolder folder;
  SECTION("no train") {
    put_png(folder, "val/a/1.png");
    expect_error(ErrorKind::data, {folder.path(), "no folder train", "DIR/train/CLASS/IMAGE"},
                 [&] { open(folder); });
  }
  SECTION("images straight under val") {
    put_png(folder, "train/a/1.png");
    put_png(folder, "val/1.png");
    put_png(folder, "val/2.png");
    expect_error(ErrorKind::data, {"/val", "2 images", "1.png", "DIR/val/CLASS/IMAGE"},
                 [&] { open(folder); });
  }
  SECTION("nothing in val") {
    put_png(folder, "train/a/1.png");
    std::filesystem::create_directories(folder / "val");
    expect_error(ErrorKind::data, {"/val", "no class folders"}, [&] { open(folder); });
  }
  SECTION("no images in val's classes") {
    put_png(folder, "train/a/1.png");
    std::filesystem::create_directories(folder / "val/a");
    expect_error(ErrorKind::data, {"/val", "no images"}, [&] { open(folder); });
  }
  SECTION("no such folder") {
    expect_error(ErrorKind::data, {"absent", "no such folder", "expected layout"},
                 [&] { open_image_folder(folder / "absent", 1000); });
  }
}

TEST_CASE("folder: images are known by content or by name, at any depth") {
  TemporaryFolder folder;
  put_png(folder, "train/a/no_ending");
  put_png(folder, "train/a/x/y/deep.JPEG");
  put_file(folder, "train/a/named.PNG", counted(30, 65));  // no image: bad when read
  put_file(folder, "train/a/empty", {});
  put_file(folder, "train/a/text", counted(30, 65));
  std::string gif = "GIF89a";
  put_file(folder, "train/a/gif", Bytes(gif.begin(), gif.end()));  // an image, of a type not read
  put_png(folder, "validation/a/1.png");
  FolderPair pair = open(folder);
  REQUIRE(pair.train->size() == 4);
  std::vector<std::string> ends = {"a/gif", "a/named.PNG", "a/no_ending", "a/x/y/deep.JPEG"};
  for (int i = 0; i < 4; ++i) {
    CHECK(pair.train->image_path_or_name(i) == folder / ("train/" + ends[i]));
  }
  CHECK(pair.validation->size() == 1);
  CHECK(any_holds(pair.notes, "ignored 2 hidden or foreign entries"));
  CHECK(pair.train->read(2).width == 8);
  expect_error(ErrorKind::data, {"named.PNG: no image"}, [&] { pair.train->read(1); });
  expect_error(ErrorKind::data, {"gif: a GIF image"}, [&] { pair.train->read(0); });
}

TEST_CASE("folder: links are followed, loops are cut, dangling ones are bad images") {
  TemporaryFolder folder;
  put_png(folder, "elsewhere/1.png");
  put_png(folder, "train/a/1.png");
  put_png(folder, "train/c/1.png");
  link(folder / "elsewhere", folder / "train/b");
  link(folder / "train", folder / "train/a/up");
  link(folder / "train/a", folder / "train/a/self");
  link(folder / "nowhere", folder / "train/a/dangling.png");
  link(folder / "nowhere", folder / "train/a/dangling");
  FolderPair pair = open(folder);
  CHECK(pair.train->class_names() == std::vector<std::string>{"a", "b", "c"});
  REQUIRE(pair.train->size() == 4);
  CHECK(any_holds(pair.notes, "cut 2 links"));
  CHECK(any_holds(pair.notes, "ignored 1 hidden or foreign entry"));
  expect_error(ErrorKind::data, {"dangling.png", "No such file"}, [&] { pair.train->read(1); });
}

TEST_CASE("folder: pipes and folders named like images do not hang") {
  TemporaryFolder folder;
  put_png(folder, "train/a/1.png");
  put_png(folder, "train/a/folder.png/2.png");
  REQUIRE(::mkfifo((folder / "train/a/pipe.png").c_str(), 0600) == 0);
  REQUIRE(::mkfifo((folder / "train/a/pipe").c_str(), 0600) == 0);
  FolderPair pair = open(folder);
  REQUIRE(pair.train->size() == 3);
  expect_error(ErrorKind::data, {"pipe.png", "expected a file"}, [&] { pair.train->read(2); });
}

TEST_CASE("folder: names of any bytes, shown on one line") {
  TemporaryFolder folder;
  put_png(folder, "train/\xFF\n/\xFE.png");
  FolderPair pair = open(folder);
  CHECK(pair.train->class_names().front() == "\xFF\n");
  CHECK(pair.train->read(0).width == 8);
  std::filesystem::create_directories(folder / "train/zz\x01");
  expect_error(ErrorKind::data, {"zz\\x01"}, [&] { open(folder); });
}

TEST_CASE("folder: rotations are counted once each") {
  TemporaryFolder folder;
  testing::JpegOptions options;
  options.exif = testing::exif_block(6);
  put_file(folder, "train/a/1.jpg", testing::make_jpeg(testing::test_image(8, 8), options));
  put_png(folder, "train/a/2.png");
  FolderPair pair = open(folder);
  CHECK(pair.train->rotated_images().empty());
  for (int k = 0; k < 2; ++k) {
    for (int i = 0; i < 2; ++i) pair.train->read(i);
  }
  CHECK(pair.train->rotated_images().size() == 1);
  CHECK(rotation_note(1).starts_with("1 image carries a rotation"));
  CHECK(rotation_note(2).starts_with("2 images carry a rotation"));
  CHECK(rotation_note(0).empty());
}

TEST_CASE("folder: the fingerprint knows names, sizes and labels, not the place") {
  TemporaryFolder a;
  TemporaryFolder b;
  for (const TemporaryFolder* folder : {&a, &b}) {
    put_png(*folder, "train/x/1.png");
    put_png(*folder, "train/y/2.png");
  }
  std::string before = open(a).train->fingerprint();
  CHECK(before == open(b).train->fingerprint());
  SECTION("a name") {
    std::filesystem::rename(b / "train/x/1.png", b / "train/x/3.png");
  }
  SECTION("a label") {
    std::filesystem::rename(b / "train/x", b / "train/z");
  }
  SECTION("a size") {
    put_png(b, "train/x/1.png", 90);
  }
  SECTION("one more") {
    put_png(b, "train/x/9.png");
  }
  CHECK(before != open(b).train->fingerprint());
}

TEST_CASE("scan: unreadable folders are named") {
  TemporaryFolder folder;
  expect_error(ErrorKind::data, {"absent", "No such file"},
               [&] { scan_folder(folder / "absent"); });
  put_file(folder, "file", counted(3));
  expect_error(ErrorKind::data, {"file", "Not a directory"}, [&] { scan_folder(folder / "file"); });
}
