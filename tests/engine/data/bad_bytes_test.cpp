// Parsers on damaged bytes: every cut of small files, and many flipped bits. Each must give an
// image or a `data` error, in little memory; the sanitizers watch the rest.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>

#include "engine/data/cifar.h"
#include "engine/data/decode_image.h"
#include "engine/data/idx.h"
#include "engine/data/random.h"
#include "tests/engine/data/data_files.h"
#include "tests/support/catch.h"

using namespace convoy;
using namespace convoy::testing;

namespace {

constexpr std::int64_t kMaxPixels = 100000;

/// Runs `parse`; false where it ends in a `data` error. Anything else fails the test.
template <class Parse>
bool survives(const Parse& parse, const Bytes& bytes) {
  try {
    parse(bytes);
    return true;
  } catch (const Error& error) {
    INFO(error.text());
    CHECK(name(error.kind()) == std::string("data"));
    CHECK(error.text().find('\n') == std::string::npos);
    return false;
  }
}

/// Cuts at every length and flips bits; the number of damaged files that were taken for good.
template <class Parse>
int attack(const Parse& parse, const Bytes& file, int flips) {
  REQUIRE(survives(parse, file));
  int cuts_taken = 0;
  for (std::size_t size = 0; size < file.size(); ++size) {
    Bytes cut(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(size));
    cuts_taken += survives(parse, cut) ? 1 : 0;
  }
  DataRandom random(1, RandomPurpose::synthetic, 0, file.size());
  for (int i = 0; i < flips; ++i) {
    Bytes damaged = file;
    for (std::int64_t k = random.below(4); k >= 0; --k) {
      damaged[random.below(std::ssize(file))] ^= static_cast<std::uint8_t>(1 << random.below(8));
    }
    survives(parse, damaged);
  }
  return cuts_taken;
}

void decode(const Bytes& bytes) {
  Image image = decode_image(bytes, kMaxPixels);
  // Every pixel is used, so that memory that nobody wrote is seen by a sanitizer that looks for it.
  int sum = 0;
  for (std::uint8_t v : image.pixels) sum += v;
  CHECK(sum >= 0);
}

/// Peak memory of this process in MiB.
long peak_mib() {
  rusage usage = {};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss / 1024;
}

/// By how many MiB the peak of a process grows that decodes `bytes`; they must be refused.
int growth_of_refusal(const Bytes& bytes) {
  pid_t child = ::fork();
  if (child == 0) {
    long before = peak_mib();
    try {
      decode_image(bytes);
    } catch (const Error& error) {
      long grown = std::min(peak_mib() - before, 254L);
      ::_exit(error.kind() == ErrorKind::data ? static_cast<int>(grown) : 255);
    }
    ::_exit(255);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  return WEXITSTATUS(status);
}

}  // namespace

TEST_CASE("bad bytes: claims of many pixels cost no memory") {
  for (std::uint32_t side : {13000u, 30000u, 65500u, 2147483647u}) {
    CHECK(growth_of_refusal(testing::make_png_claiming(side, side)) < 64);
  }
  for (bool progressive : {false, true}) {
    testing::JpegOptions options;
    options.progressive = progressive;
    Bytes file = testing::make_jpeg(testing::test_image(16, 16), options);
    for (int side : {13000, 65500}) {
      CHECK(growth_of_refusal(testing::with_sides(file, side, side)) < 64);
    }
  }
  for (std::uint32_t count : {1000000u, 4294967295u}) {
    Bytes idx = idx_bytes({2051, count, 10000, 10000}, counted(100));
    CHECK_THROWS_AS(parse_idx_images(idx, "f", kDefaultMaxPixels), Error);
  }
}

TEST_CASE("bad bytes: JPEG") {
  testing::JpegOptions options;
  options.exif = testing::exif_block(6);
  options.progressive = GENERATE(false, true);
  options.luma_h = 2;
  options.restart_interval = 2;
  CHECK(attack(decode, testing::make_jpeg(testing::test_image(33, 17), options), 1500) == 0);
}

TEST_CASE("bad bytes: JPEG of four inks, and grey") {
  CHECK(attack(decode, testing::make_cmyk_jpeg(16, 9, counted(16 * 9 * 4), true, true), 500) == 0);
  testing::JpegOptions options;
  options.grey = true;
  CHECK(attack(decode, testing::make_jpeg(testing::test_image(9, 9), options), 500) == 0);
}

TEST_CASE("bad bytes: PNG") {
  testing::PngOptions options;
  options.width = 9;
  options.height = 7;
  options.interlaced = GENERATE(false, true);
  options.colour = GENERATE(testing::PngColour::palette, testing::PngColour::rgba);
  options.palette = counted(3 * 16);
  options.transparency = options.colour == testing::PngColour::palette ? counted(5) : Bytes{};
  options.chunks = {testing::png_chunk("eXIf", testing::exif_block(6))};
  int channels = options.colour == testing::PngColour::palette ? 1 : 4;
  std::vector<int> samples(static_cast<std::size_t>(9 * 7 * channels), 3);
  CHECK(attack(decode, testing::make_png(options, samples), 1500) == 0);
}

TEST_CASE("bad bytes: PNG whose checksums are mended") {
  // Behind a right checksum libpng looks at what flipped bits mean.
  testing::PngOptions options;
  options.width = 6;
  options.height = 5;
  Bytes file = testing::make_png(options, std::vector<int>(6 * 5 * 3, 200));
  DataRandom random(2, RandomPurpose::synthetic, 0, 0);
  for (int i = 0; i < 1500; ++i) {
    Bytes damaged = file;
    damaged[16 + random.below(13)] ^= static_cast<std::uint8_t>(1 << random.below(8));
    damaged[41 + random.below(20)] ^= static_cast<std::uint8_t>(random.below(3) == 0 ? 4 : 0);
    Bytes header(damaged.begin() + 16, damaged.begin() + 29);
    Bytes mended = testing::png_chunk("IHDR", header);
    std::copy(mended.begin(), mended.end(), damaged.begin() + 8);
    std::size_t data = file.size() - 12 - 33 - 12;
    Bytes pixels(damaged.begin() + 41, damaged.begin() + 41 + static_cast<std::ptrdiff_t>(data));
    Bytes mended_data = testing::png_chunk("IDAT", pixels);
    std::copy(mended_data.begin(), mended_data.end(), damaged.begin() + 33);
    survives(decode, damaged);
  }
}

TEST_CASE("bad bytes: idx, plain and gzipped") {
  Bytes plain = idx_bytes({2051, 10, 4, 3}, counted(120));
  Bytes gzip(400);
  z_stream stream = {};
  REQUIRE(deflateInit2(&stream, 6, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  stream.next_in = plain.data();
  stream.avail_in = static_cast<uInt>(plain.size());
  stream.next_out = gzip.data();
  stream.avail_out = static_cast<uInt>(gzip.size());
  REQUIRE(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  gzip.resize(stream.total_out);
  deflateEnd(&stream);
  auto images = [](const Bytes& bytes) { parse_idx_images(bytes, "f", kMaxPixels); };
  auto labels = [](const Bytes& bytes) { parse_idx_labels(bytes, "f"); };
  CHECK(attack(images, plain, 2000) == 0);
  CHECK(attack(images, gzip, 2000) == 0);
  CHECK(attack(labels, idx_bytes({2049, 10}, counted(10)), 2000) == 0);
}

TEST_CASE("bad bytes: CIFAR") {
  auto parse = [](const Bytes& bytes) { check_cifar(bytes, "f"); };
  CHECK(attack(parse, Bytes(3073), 500) == 0);
}
