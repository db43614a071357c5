#include "engine/data/idx.h"

#include <zlib.h>

#include "engine/data/decode_image.h"
#include "engine/data/gunzip.h"
#include "tests/engine/data/data_files.h"
#include "tests/support/catch.h"
#include "tests/support/expect_error.h"

using namespace convoy;
using namespace convoy::testing;

namespace {

constexpr std::uint32_t kImages = 2051;
constexpr std::uint32_t kLabels = 2049;

Bytes gzipped(const Bytes& raw) {
  z_stream stream = {};
  if (deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
    throw std::runtime_error("deflateInit2 failed");
  }
  Bytes out(raw.size() + 1000);
  stream.next_in = const_cast<Bytef*>(raw.data());
  stream.avail_in = static_cast<uInt>(raw.size());
  stream.next_out = out.data();
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

/// Ten images of 4 x 3 (height x width) pixels that count up, labels 0 to 9.
Bytes ten_images() {
  return idx_bytes({kImages, 10, 4, 3}, counted(120));
}
Bytes ten_labels() {
  return idx_bytes({kLabels, 10}, counted(10));
}

std::shared_ptr<const Dataset> open_train(const TemporaryFolder& folder, std::int64_t classes = 0) {
  return open_idx(folder.path(), "train", kDefaultMaxPixels, classes);
}

void check_ten(const Dataset& dataset) {
  REQUIRE(dataset.size() == 10);
  for (std::int64_t i = 0; i < 10; ++i) {
    CHECK(dataset.label(i) == i);
    Image image = dataset.read(i);
    CHECK(image.width == 3);
    CHECK(image.height == 4);
    for (int p = 0; p < 36; ++p) REQUIRE(image.pixels[p] == i * 12 + p / 3);
  }
}

void images_fail(const Bytes& bytes, const std::vector<std::string_view>& parts) {
  expect_error(ErrorKind::data, parts,
               [&] { parse_idx_images(bytes, "the/file", kDefaultMaxPixels); });
}

}  // namespace

TEST_CASE("idx: plain and gzipped, with and without .gz, with - and .") {
  for (const char* separator : {"-", "."}) {
    for (const char* ending : {"", ".gz"}) {
      for (bool gzip : {false, true}) {
        TemporaryFolder folder;
        std::string tail = std::string("-ubyte") + ending;
        put_file(folder, std::string("train-images") + separator + "idx3" + tail,
                 gzip ? gzipped(ten_images()) : ten_images());
        put_file(folder, std::string("train-labels") + separator + "idx1" + tail,
                 gzip ? gzipped(ten_labels()) : ten_labels());
        check_ten(*open_train(folder));
      }
    }
  }
}

TEST_CASE("idx: wrong magic numbers are said with the right ones") {
  images_fail(ten_labels(), {"the/file", "2049", "2051", "label file"});
  std::string html = "<!DOCTYPE html><html>";
  images_fail(Bytes(html.begin(), html.end()), {"1008813135", "2051", "web page"});
  expect_error(ErrorKind::data, {"2051", "2049", "image file"},
               [] { parse_idx_labels(ten_images(), "x"); });
}

TEST_CASE("idx: header and body must agree") {
  images_fail(idx_bytes({kImages, 100, 2, 2}, counted(99 * 4)), {"100", "99"});
  images_fail(idx_bytes({kImages, 10, 2, 2}, counted(41)), {"more than the 10"});
  images_fail(idx_bytes({kImages, 10, 2}, {}), {"header is cut short"});
  images_fail({}, {"header is cut short"});
  images_fail(idx_bytes({kImages, 0, 2, 2}, {}), {"0 images"});
  images_fail(idx_bytes({kImages, 1, 0, 2}, {}), {"no pixels"});
  images_fail(idx_bytes({kImages, 1, 65536, 65536}, {}), {"the/file: too large", "65536 x 65536"});
  images_fail(idx_bytes({kImages, 0xFFFFFFFF, 10000, 10000}, {}), {"4294967295", "holds 0"});
  images_fail(gzipped(idx_bytes({kImages, 100, 2, 2}, counted(99 * 4))), {"100", "99"});
  images_fail(gzipped(idx_bytes({kImages, 10, 2, 2}, counted(41))), {"more than the 10"});
}

TEST_CASE("idx: damaged gzip data") {
  Bytes whole = gzipped(ten_images());
  Bytes cut(whole.begin(), whole.end() - 12);
  images_fail(cut, {"damaged gzip data", "cut short"});
  Bytes checksum = whole;
  checksum[whole.size() - 6] ^= 1;
  images_fail(checksum, {"damaged gzip data", "incorrect data check"});
  Bytes tail = whole;
  tail.push_back('x');
  images_fail(tail, {"damaged gzip data"});
}

TEST_CASE("idx: gzip members after each other are one content") {
  Bytes all = ten_images();
  Bytes bytes = gzipped(Bytes(all.begin(), all.begin() + 50));
  Bytes second = gzipped(Bytes(all.begin() + 50, all.end()));
  bytes.insert(bytes.end(), second.begin(), second.end());
  CHECK(parse_idx_images(bytes, "x", kDefaultMaxPixels).values == counted(120));
}

TEST_CASE("idx: images and labels must be as many") {
  TemporaryFolder folder;
  put_file(folder, "train-images-idx3-ubyte", ten_images());
  put_file(folder, "train-labels-idx1-ubyte", idx_bytes({kLabels, 9}, counted(9)));
  expect_error(ErrorKind::data, {"10 images", "9 labels", "train-images", "train-labels"},
               [&] { open_train(folder); });
}

TEST_CASE("idx: a label out of range is said with file and record") {
  TemporaryFolder folder;
  Bytes labels = counted(10);
  labels[7] = 255;
  put_file(folder, "train-images-idx3-ubyte", ten_images());
  put_file(folder, "train-labels-idx1-ubyte", idx_bytes({kLabels, 10}, labels));
  auto dataset = open_train(folder);
  expect_error(ErrorKind::data, {"train-labels-idx1-ubyte record 7", "255", "0..9"},
               [&] { check_labels(*dataset, 10); });
}

TEST_CASE("idx: names of classes, fingerprints") {
  CHECK(fashion_class_names(10)[9] == "Ankle boot");
  CHECK(fashion_class_names(2).size() == 10);
  CHECK(fashion_class_names(12) ==
        std::vector<std::string>{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11"});
  TemporaryFolder a;
  TemporaryFolder b;
  for (const TemporaryFolder* folder : {&a, &b}) {
    put_file(*folder, "train-images-idx3-ubyte", ten_images());
    put_file(*folder, "train-labels-idx1-ubyte", ten_labels());
  }
  CHECK(open_train(a)->fingerprint() == open_train(b)->fingerprint());
  Bytes other = counted(10);
  std::swap(other[0], other[1]);
  put_file(b, "train-labels-idx1-ubyte", idx_bytes({kLabels, 10}, other));
  CHECK(open_train(a)->fingerprint() != open_train(b)->fingerprint());
}

TEST_CASE("idx: an absent file is named") {
  TemporaryFolder folder;
  expect_error(ErrorKind::data, {folder.path(), "train-images-idx3-ubyte"},
               [&] { open_train(folder); });
}
