#include "engine/io/safetensors.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/io/convert.h"
#include "tests/support/arrays.h"
#include "tests/support/expect_error.h"
#include "tests/support/temporary_folder.h"

using namespace convoy;
using namespace convoy::testing;

namespace {

const NamedArray& find(const SafetensorsFile& file, std::string_view name) {
  const auto found = std::find_if(file.tensors.begin(), file.tensors.end(),
                                  [&](const NamedArray& array) { return array.name == name; });
  REQUIRE(found != file.tensors.end());
  return *found;
}

using Shape64 = std::vector<std::int64_t>;

}  // namespace

TEST_CASE("safetensors: a file of the Python package, all types", "[io][safetensors]") {
  const SafetensorsFile file = read_safetensors(CONVOY_FIXTURES "/mixed.safetensors");
  CHECK(file.tensors.size() == 15);
  CHECK(file.metadata ==
        std::map<std::string, std::string>{{"format", "pt"}, {"k\xC3\xB6y", "v\n"}});

  CHECK(find(file, "f32").shape == Shape64{2, 3});
  CHECK(values_of<float>(find(file, "f32")) ==
        std::vector<float>{-0.5f, -0.25f, 0, 0.25f, 0.5f, 0.75f});
  CHECK(find(file, "f64").dtype == DType::f64);
  CHECK(values_of<double>(find(file, "f64")) == std::vector<double>{0.1, -1e300});
  CHECK(find(file, "i64").shape.empty());
  CHECK(values_of<std::int64_t>(find(file, "i64")) == std::vector<std::int64_t>{-5000000000});
  CHECK(find(file, "i32").shape == Shape64{2, 1});
  CHECK(values_of<std::int32_t>(find(file, "i32")) == std::vector<std::int32_t>{-7, 2000000000});
  CHECK(find(file, "u8").dtype == DType::u8);
  CHECK(values_of<std::uint8_t>(find(file, "u8")) == std::vector<std::uint8_t>{0, 255});
  CHECK(values_of<std::uint8_t>(find(file, "bool")) == std::vector<std::uint8_t>{1, 0});
  CHECK(find(file, "rank5").shape == Shape64{1, 2, 1, 2, 1});
  CHECK(find(file, "empty").shape == Shape64{3, 0});
  CHECK(find(file, "empty").bytes.empty());
  CHECK(values_of<float>(find(file, "name with \"quotes\" and \xC3\xBC")) ==
        std::vector<float>{1.5f});
}

TEST_CASE("safetensors: narrow types become wider ones without loss", "[io][safetensors]") {
  const SafetensorsFile file = read_safetensors(CONVOY_FIXTURES "/mixed.safetensors");
  const std::vector<float> half = values_of<float>(find(file, "f16"));
  CHECK(find(file, "f16").dtype == DType::f32);
  CHECK(half == std::vector<float>{0, 0, 1, -2.5f, 65504, std::ldexp(1.0f, -24),
                                   std::numeric_limits<float>::infinity()});
  CHECK_FALSE(std::signbit(half[0]));
  CHECK(std::signbit(half[1]));
  CHECK(values_of<float>(find(file, "bf16")) ==
        std::vector<float>{1, -0.15625f, std::ldexp(1.0f, 100)});
  CHECK(values_of<std::int32_t>(find(file, "i16")) == std::vector<std::int32_t>{-32768, 32767});
  CHECK(values_of<std::int32_t>(find(file, "i8")) == std::vector<std::int32_t>{-128, 127});
  CHECK(values_of<std::int32_t>(find(file, "u16")) == std::vector<std::int32_t>{0, 65535});
  CHECK(find(file, "u32").dtype == DType::i64);
  CHECK(values_of<std::int64_t>(find(file, "u32")) == std::vector<std::int64_t>{4294967295});
}

TEST_CASE("safetensors: every half-precision value by its definition", "[io][safetensors]") {
  std::vector<std::uint16_t> in(65536);
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<std::uint16_t>(i);
  std::vector<float> out(in.size());
  convert_loaded(*find_file_type("F16"), std::as_bytes(std::span(in)),
                 std::as_writable_bytes(std::span(out)));
  int wrong = 0;
  for (int i = 0; i < 65536; ++i) {
    const int exponent = i >> 10 & 31, fraction = i & 1023;
    double expected =
        exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
    if (exponent == 31) expected = fraction ? std::nan("") : INFINITY;
    const double value = std::fabs(double(out[i]));
    const bool equal = std::isnan(expected) ? std::isnan(value) : value == expected;
    wrong += !equal || std::signbit(out[i]) != (i >= 32768);
  }
  CHECK(wrong == 0);
}

TEST_CASE("safetensors: what is written is read back", "[io][safetensors]") {
  TemporaryFolder folder;
  const std::vector<NamedArray> tensors{
      make_array<float>("conv1.weight", {2, 1, 3, 1}, {1, -2, 3, 1e-40f, 5, 6}),
      make_array<float>("odd", {1}, {0.1f}),
      make_array<std::int64_t>("bn1.num_batches_tracked", {}, {1LL << 40}),
      make_array<std::uint8_t>("mask", {3}, {1, 2, 3}),
      make_array<double>("wide", {2}, {0.1, -0.0}),
      make_array<std::int32_t>("none", {0, 7}, {}),
      make_array<float>("\xC3\xBC\"\\\n", {1}, {7}),
  };
  const std::map<std::string, std::string> metadata{{"format", "pt"}, {"a\"", "\xE2\x82\xAC"}};
  write_safetensors(folder / "f", tensors, metadata);
  const SafetensorsFile file = read_safetensors(folder / "f");
  CHECK(file.metadata == metadata);
  REQUIRE(file.tensors.size() == tensors.size());
  for (const NamedArray& array : tensors) CHECK(find(file, array.name) == array);
  CHECK(read_file(folder / "f").size() == safetensors_size(tensors, metadata));
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
}

TEST_CASE("safetensors: each value lies aligned in the file", "[io][safetensors]") {
  TemporaryFolder folder;
  write_safetensors(
      folder / "f",
      std::vector{make_array<std::uint8_t>("a", {1}, {1}), make_array<float>("b", {1}, {2}),
                  make_array<std::int64_t>("c", {1}, {3}), make_array<float>("d", {1}, {4})});
  const std::string bytes = read_file(folder / "f");
  CHECK(bytes.substr(8, 5) == "{\"c\":");
  CHECK((bytes.size() - 8 - 4 - 4 - 1) % 8 == 0);
  CHECK(bytes.substr(bytes.size() - 17) == std::string("\3\0\0\0\0\0\0\0"
                                                       "\0\0\0\x40"
                                                       "\0\0\x80\x40"
                                                       "\1",
                                                       17));
  const SafetensorsFile file = read_safetensors(folder / "f");
  std::string order;
  for (const NamedArray& array : file.tensors) order += array.name;
  CHECK(order == "cbda");
}

TEST_CASE("safetensors: no tensors at all", "[io][safetensors]") {
  TemporaryFolder folder;
  write_safetensors(folder / "f", {});
  CHECK(read_file(folder / "f") == std::string("\x08\0\0\0\0\0\0\0{}      ", 16));
  CHECK(read_safetensors(folder / "f").tensors.empty());
}

TEST_CASE("safetensors: writing replaces a file whole", "[io][safetensors]") {
  TemporaryFolder folder;
  write_file(folder / "f", "old");
  write_safetensors(folder / "f", std::vector{make_array<float>("a", {1}, {2})});
  CHECK(read_safetensors(folder / "f").tensors.size() == 1);
}

TEST_CASE("safetensors: bf16 arrays can be written", "[io][safetensors]") {
  TemporaryFolder folder;
  write_safetensors(folder / "f", std::vector{make_array<std::uint16_t>("a", {2}, {0x3F80, 0xC000},
                                                                        DType::bf16)});
  const SafetensorsFile file = read_safetensors(folder / "f");
  CHECK(values_of<float>(find(file, "a")) == std::vector<float>{1, -2});
}

TEST_CASE("safetensors: arrays that make no sense are refused", "[io][safetensors]") {
  TemporaryFolder folder;
  const auto refused = [&](const std::vector<NamedArray>& tensors, std::string_view part) {
    expect_error(ErrorKind::internal, {part}, [&] { write_safetensors(folder / "f", tensors); });
    CHECK_FALSE(std::filesystem::exists(folder / "f"));
  };
  refused({make_array<float>("a", {2}, {1})}, "4 bytes, shape (2) of f32 needs 8");
  refused({make_array<float>("a", {-1}, {})}, "shape (-1)");
  refused({make_array<float>("a", {1LL << 62, 4}, {})}, "no valid size");
  refused({make_array<float>("\xFF", {1}, {1})}, "UTF-8");
  refused({make_array<float>("__metadata__", {1}, {1})}, "__metadata__");
  refused({make_array<float>("a", {1}, {1}), make_array<float>("a", {1}, {1})}, "two tensors");
  expect_error(ErrorKind::internal, {"metadata"}, [&] {
    write_safetensors(folder / "f", {}, {{"k", "\xFF"}});
  });
}

TEST_CASE("safetensors: a file that cannot be written is a resource error", "[io][safetensors]") {
  TemporaryFolder folder;
  expect_error(ErrorKind::resource, {"absent/f", "needed 16 bytes", "free", "No such file"},
               [&] { write_safetensors(folder / "absent/f", {}); });
  std::filesystem::create_directory(folder / "taken");
  expect_error(ErrorKind::resource, {"taken"}, [&] { write_safetensors(folder / "taken", {}); });
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
}
