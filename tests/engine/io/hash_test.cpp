// Expected hashes come from the Python package xxhash 3.x.
#include "engine/io/hash.h"

#include "tests/support/arrays.h"
#include "tests/support/catch.h"

using namespace convoy;
using convoy::testing::make_array;

TEST_CASE("hash: XXH3 of known bytes", "[io][hash]") {
  CHECK(hash128_hex({}) == "99aa06d3014798d86001c324468d497f");
  CHECK(hash128_hex(bytes_of("convoy")) == "ca1b729d91207a2816b8fc3ef51886af");
  CHECK(hash64({}) == 0x2d06800538d394c2);
  CHECK(hash64(bytes_of("convoy")) == 0xc6572b87d8a424ab);
}

TEST_CASE("hash: a stream hashes like the whole", "[io][hash]") {
  std::string text;
  for (int i = 0; i < 5000; ++i) text += static_cast<char>(i * 7);
  Hash128 hash;
  for (std::size_t at = 0; at < text.size(); at += 333) {
    hash.add(bytes_of(std::string_view(text).substr(at, 333)));
  }
  CHECK(hash.hex() == hash128_hex(bytes_of(text)));
}

TEST_CASE("hash: weights by name in float32, counters left out", "[io][hash]") {
  // xxhash.xxh3_128(b"bn.running_mean\0" + struct.pack("<2f", 0.5, -1) +
  //                 b"conv.weight\0" + struct.pack("<3f", 1, 2, 3.25))
  const char* expected = "7ee4499633a8baa3d6c3d99bcc08d346";
  const NamedArray weight = make_array<float>("conv.weight", {3}, {1, 2, 3.25f});
  const NamedArray mean = make_array<float>("bn.running_mean", {2}, {0.5f, -1});
  const NamedArray counter = make_array<std::int64_t>("bn.num_batches_tracked", {}, {7});
  CHECK(weights_hash(std::vector{weight, mean, counter}) == expected);
  CHECK(weights_hash(std::vector{mean, weight}) == expected);
  const NamedArray wide = make_array<double>("conv.weight", {3, 1}, {1, 2, 3.25});
  const NamedArray brain =
      make_array<std::uint16_t>("bn.running_mean", {2}, {0x3F00, 0xBF80}, DType::bf16);
  CHECK(weights_hash(std::vector{wide, brain}) == expected);

  const NamedArray other = make_array<float>("conv.weight", {3}, {1, 2, 3.2500002f});
  CHECK(weights_hash(std::vector{other, mean}) != expected);
  const NamedArray renamed = make_array<float>("conv.weighs", {3}, {1, 2, 3.25f});
  CHECK(weights_hash(std::vector{renamed, mean}) != expected);
}

TEST_CASE("hash: wide values are rounded in pieces of any length", "[io][hash]") {
  std::vector<double> wide;
  std::vector<float> narrow;
  for (int i = 0; i < 10001; ++i) {
    wide.push_back(i / 3.0);
    narrow.push_back(static_cast<float>(i / 3.0));
  }
  CHECK(weights_hash(std::vector{make_array("w", {10001}, wide)}) ==
        weights_hash(std::vector{make_array("w", {10001}, narrow)}));
}
