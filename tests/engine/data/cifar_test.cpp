#include "engine/data/cifar.h"

#include "tests/engine/data/data_files.h"
#include "tests/support/catch.h"
#include "tests/support/expect_error.h"

using namespace convoy;
using namespace convoy::testing;

namespace {

/// A record whose planes hold one value each.
Bytes record(int label, int red, int green, int blue) {
  Bytes out = {static_cast<std::uint8_t>(label)};
  for (int v : {red, green, blue}) out.insert(out.end(), 1024, static_cast<std::uint8_t>(v));
  return out;
}

Bytes records(int count, int first = 0) {
  Bytes out;
  for (int i = first; i < first + count; ++i) {
    Bytes one = record(i % 10, 10 + i, 20 + i, 30 + i);
    out.insert(out.end(), one.begin(), one.end());
  }
  return out;
}

}  // namespace

TEST_CASE("cifar10: planes become pixels, files follow each other") {
  TemporaryFolder folder;
  put_file(folder, "data_batch_1.bin", records(5));
  put_file(folder, "data_batch_2.bin", records(5, 5));
  put_file(folder, "test_batch.bin", record(3, 10, 20, 30));
  auto train = open_cifar(folder.path(), true);
  REQUIRE(train->size() == 10);
  for (int i = 0; i < 10; ++i) {
    CHECK(train->label(i) == i);
    Image image = train->read(i);
    auto v = [i](int base) { return static_cast<std::uint8_t>(base + i); };
    CHECK(image.pixels == testing::plain_image(32, 32, v(10), v(20), v(30)).pixels);
  }
  CHECK(train->image_path_or_name(7) == folder / "data_batch_2.bin record 2");
  CHECK(any_holds(train->notes(), "2 of 5"));
  CHECK(open_cifar(folder.path(), false)->label(0) == 3);
  CHECK(train->class_names()[9] == "truck");
}

TEST_CASE("cifar10: places within a plane") {
  TemporaryFolder folder;
  Bytes one = record(0, 0, 0, 0);
  one[1 + 2 * 32 + 5] = 77;          // red, row 2, column 5
  one[1 + 2048 + 31 * 32 + 0] = 88;  // blue, last row, first column
  put_file(folder, "cifar-10-batches-bin/test_batch.bin", one);
  Image image = open_cifar(folder.path(), false)->read(0);
  CHECK(image.pixels[(2 * 32 + 5) * 3] == 77);
  CHECK(image.pixels[31 * 32 * 3 + 2] == 88);
}

TEST_CASE("cifar10: sizes and labels are exact") {
  Bytes cut = records(5);
  cut.pop_back();
  expect_error(ErrorKind::data, {"f.bin", "15364 bytes", "3073", "remainder 3072"},
               [&] { check_cifar(cut, "f.bin"); });
  expect_error(ErrorKind::data, {"3074 bytes", "3073", "remainder 1"},
               [] { check_cifar(Bytes(3074), "f.bin"); });
  expect_error(ErrorKind::data, {"0 bytes"}, [] { check_cifar({}, "f.bin"); });
  Bytes label = records(5);
  label[3 * 3073] = 10;
  expect_error(ErrorKind::data, {"f.bin record 3", "label 10", "0..9"},
               [&] { check_cifar(label, "f.bin"); });
  TemporaryFolder folder;
  expect_error(ErrorKind::data, {folder.path(), "data_batch_1.bin"},
               [&] { open_cifar(folder.path(), true); });
}
