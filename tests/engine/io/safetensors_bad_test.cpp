// Files from strangers: each member of the list of damages is `checkpoint`, names file and tensor,
// and takes neither time nor memory beyond the file.
#include <random>

#include "engine/io/safetensors.h"
#include "tests/support/arrays.h"
#include "tests/support/expect_error.h"
#include "tests/support/temporary_folder.h"

using namespace convoy;
using namespace convoy::testing;

namespace {

std::string length_bytes(std::uint64_t length) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(length >> 8 * i & 0xFF);
  return bytes;
}

std::string file_bytes(std::string_view header, std::size_t payload) {
  return length_bytes(header.size()) + std::string(header) + std::string(payload, 'p');
}

class BadFile {
 public:
  /// The raw file `bytes` must be refused with all of `parts` said.
  void refuse(std::string_view bytes, std::vector<std::string_view> parts) {
    INFO(bytes.substr(0, 300));
    write_file(folder_ / "bad", bytes);
    parts.emplace_back("/bad");
    expect_error(ErrorKind::checkpoint, parts, [&] { read_safetensors(folder_ / "bad"); });
  }
  void refuse_header(std::string_view header, std::size_t payload,
                     std::vector<std::string_view> parts) {
    refuse(file_bytes(header, payload), std::move(parts));
  }
  void accept(std::string_view header, std::size_t payload) {
    INFO(header);
    write_file(folder_ / "good", file_bytes(header, payload));
    CHECK_NOTHROW(read_safetensors(folder_ / "good"));
  }

 private:
  TemporaryFolder folder_;
};

constexpr const char* kEntry = R"("a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]})";

std::string with_entry(std::string_view rest) {
  return "{" + std::string(kEntry) + std::string(rest);
}

}  // namespace

TEST_CASE("bad safetensors: header length", "[io][safetensors]") {
  BadFile file;
  file.refuse("", {"0 bytes"});
  file.refuse("1234567", {"7 bytes"});
  file.refuse(length_bytes(0), {"does not start with '{'"});
  file.refuse(length_bytes(1), {"header length 1,"});
  file.refuse(length_bytes(1ull << 63), {"header length 9223372036854775808"});
  file.refuse(length_bytes(~0ull), {"header length 18446744073709551615"});
  file.refuse("version https://git-lfs.github.com/spec/v1\noid sha256:12\nsize 5\n",
              {"2336927755350992246", "Git LFS pointer or wrong file"});
  file.refuse("PK\3\4 a torch file", {"PyTorch .pt"});
}

TEST_CASE("bad safetensors: a header one byte over the limit", "[io][safetensors]") {
  TemporaryFolder folder;
  write_file(folder / "bad", length_bytes(100'000'001) + "{}");
  std::filesystem::resize_file(folder / "bad", 100'000'009 + 8);  // sparse
  expect_error(ErrorKind::checkpoint, {"100000001", "at most 100000000"},
               [&] { read_safetensors(folder / "bad"); });
}

TEST_CASE("bad safetensors: cut files", "[io][safetensors]") {
  BadFile file;
  const std::string whole = file_bytes(with_entry("}"), 8);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    file.refuse(std::string_view(whole).substr(0, size), {});
  }
  file.refuse(std::string_view(whole).substr(0, whole.size() - 1), {"tensor a", "cut short"});
  file.refuse(whole + "x", {"hole", "1 bytes follow tensor a"});
}

TEST_CASE("bad safetensors: JSON that is none", "[io][safetensors]") {
  BadFile file;
  file.refuse_header("[]", 0, {"does not start with '{'"});
  file.refuse_header(" {}", 0, {"does not start with '{'"});
  file.refuse_header("\xEF\xBB\xBF{}", 0, {"does not start with '{'"});
  file.refuse_header("{", 0, {"found the end"});
  file.refuse_header("{}x", 0, {"only spaces"});
  file.refuse_header("{}\n", 0, {"only spaces"});
  file.refuse_header(std::string_view("{}\0", 3), 0, {"only spaces"});
  file.refuse_header(std::string_view("{\0}", 3), 0, {"found '\\x00'"});
  file.refuse_header(with_entry(",}"), 8, {"expected '\"'"});
  file.refuse_header(with_entry("]"), 8, {"expected '}', found ']'"});
  file.refuse_header("{\"a\xFF\":{}}", 0, {"not UTF-8"});
  file.refuse_header("{\"\xC0\x80\":{}}", 0, {"not UTF-8"});
  file.refuse_header("{/* */}", 0, {"found '/'"});
}

TEST_CASE("bad safetensors: nesting", "[io][safetensors]") {
  BadFile file;
  file.refuse_header("{\"a\":" + std::string(1'000'000, '['), 0, {"expected '{', found '['"});
  std::string nested;
  for (int i = 0; i < 200'000; ++i) nested += "{\"a\":";
  file.refuse_header(nested, 0, {"tensor a: unknown key 'a'"});
  file.refuse_header(R"({"__metadata__":{"a":{"b":"c"}}})", 0, {"expected '\"'"});
}

TEST_CASE("bad safetensors: keys", "[io][safetensors]") {
  BadFile file;
  file.refuse_header(with_entry("," + std::string(kEntry) + "}"), 8, {"tensor a", "double key"});
  file.refuse_header(with_entry(R"(,"\u0061":{"dtype":"F32","shape":[0],"data_offsets":[8,8]}})"),
                     8, {"tensor a", "double key"});
  file.refuse_header(R"({"__metadata__":{},"__metadata__":{}})", 0, {"double key __metadata__"});
  file.refuse_header(R"({"__metadata__":{"x":"1","x":"2"}})", 0, {"double key 'x'"});
  file.refuse_header(R"({"a":{"dtype":"F32","dtype":"F32","shape":[0],"data_offsets":[0,0]}})", 0,
                     {"tensor a", "double key 'dtype'"});
  file.refuse_header(R"({"a":{"dtype":"F32","shape":[0]}})", 0, {"tensor a", "data_offsets"});
  file.refuse_header(R"({"a":{}})", 0, {"tensor a", "expected dtype"});
  file.refuse_header(R"({"a":{"dtype":"F32","strides":[0]}})", 0, {"unknown key 'strides'"});
  file.refuse_header(R"({"__metadata__":"text"})", 0, {"expected '{'"});
  file.refuse_header(R"({"__metadata__":{"a":1}})", 0, {"expected '\"'"});
}

TEST_CASE("bad safetensors: types and shapes", "[io][safetensors]") {
  BadFile file;
  const auto entry = [](std::string_view dtype, std::string_view shape, std::string_view range) {
    return fmt::format(R"({{"a":{{"dtype":"{}","shape":{},"data_offsets":{}}}}})", dtype, shape,
                       range);
  };
  file.refuse_header(entry("F33", "[2]", "[0,8]"), 8, {"tensor a", "unknown dtype 'F33'"});
  file.refuse_header(entry("f32", "[2]", "[0,8]"), 8, {"tensor a", "unknown dtype 'f32'"});
  file.refuse_header(entry("U64", "[1]", "[0,8]"), 8, {"tensor a", "no support", "U64"});
  file.refuse_header(entry("F8_E4M3", "[8]", "[0,8]"), 8, {"tensor a", "F8_E4M3"});
  file.refuse_header(entry("F4", "[3]", "[0,1]"), 1, {"tensor a", "wrong size", "12 bits"});
  file.refuse_header(entry("F32", "[3]", "[0,8]"), 8, {"tensor a", "wrong size: 8 bytes", "96"});
  file.refuse_header(entry("F32", "[]", "[0,8]"), 8, {"tensor a", "wrong size"});
  file.refuse_header(entry("F32", "[-2]", "[0,8]"), 8, {"whole number"});
  file.refuse_header(entry("F32", "[2.0]", "[0,8]"), 8, {"whole number"});
  file.refuse_header(entry("F32", "2", "[0,8]"), 8, {"expected '['"});
  file.refuse_header(entry("F32", "[4294967296,4294967296]", "[0,8]"), 8,
                     {"tensor a", "shape overflow: (4294967296, 4294967296)"});
  file.refuse_header(entry("F32", "[4611686018427387904,2]", "[0,8]"), 8, {"shape overflow"});
  file.refuse_header(entry("F32", "[9223372036854775807]", "[0,8]"), 8, {"shape overflow"});
  file.refuse_header(entry("F32", "[18446744073709551618]", "[0,8]"), 8, {"overflow"});
  std::string ones = "[1";
  for (int i = 0; i < 64; ++i) ones += ",1";
  file.refuse_header(entry("F32", ones + "]", "[0,4]"), 4, {"more than 64 numbers"});
}

TEST_CASE("bad safetensors: ranges", "[io][safetensors]") {
  BadFile file;
  const auto two = [](int a, int b, int c, int d) {
    return fmt::format(R"({{"a":{{"dtype":"U8","shape":[{}],"data_offsets":[{},{}]}},)"
                       R"("b":{{"dtype":"U8","shape":[{}],"data_offsets":[{},{}]}}}})",
                       b - a, a, b, d - c, c, d);
  };
  file.accept(two(0, 4, 4, 8), 8);
  file.accept(two(4, 8, 0, 4), 8);
  file.accept(two(0, 0, 0, 8), 8);
  file.refuse_header(two(0, 5, 4, 8), 8, {"tensor b", "overlap"});
  file.refuse_header(two(0, 8, 0, 8), 8, {"tensor b", "overlap"});
  file.refuse_header(two(0, 3, 4, 8), 8, {"tensor b", "hole"});
  file.refuse_header(two(1, 4, 4, 8), 8, {"tensor a", "hole"});
  file.refuse_header(two(0, 4, 4, 7), 8, {"hole", "1 bytes follow tensor b"});
  file.refuse_header(two(0, 4, 4, 9), 8, {"tensor b", "ends at 9"});
  file.refuse_header(two(0, 4, 8, 4), 8, {});
  file.refuse_header(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[8,4]}})", 8,
                     {"tensor a", "begins at 8 and ends before, at 4"});
  file.refuse_header(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4,5]}})", 8,
                     {"more than 2 numbers"});
  file.refuse_header(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[4]}})", 8,
                     {"tensor a", "two numbers"});
  file.refuse_header("{}", 8, {"hole", "8 bytes follow"});
}

TEST_CASE("bad safetensors: too many entries, too much text", "[io][safetensors]") {
  BadFile file;
  const auto header = [](int count) {
    std::string text = "{";
    for (int i = 0; i < count; ++i) {
      text += fmt::format(R"({}"t{}":{{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})",
                          i ? "," : "", i);
    }
    return text + "}";
  };
  file.accept(header(65'536), 0);
  file.refuse_header(header(65'537), 0, {"more than 65536 entries"});
  file.refuse_header(header(200'000), 0, {"more than 65536 entries"});
  std::string metadata = R"({"__metadata__":{)";
  for (int i = 0; i < 65'537; ++i) metadata += fmt::format("{}\"{}\":\"\"", i ? "," : "", i);
  file.refuse_header(metadata + "}}", 0, {"more than 65536 entries"});
  file.refuse_header("{\"__metadata__\":{\"a\":\"" + std::string(34'000'000, 'x') + "\"}}", 0,
                     {"names and metadata"});
}

TEST_CASE("bad safetensors: spaces after the header are padding", "[io][safetensors]") {
  BadFile file;
  file.accept(with_entry("}") + std::string(100'000, ' '), 8);
}

TEST_CASE("bad safetensors: no file, no regular file", "[io][safetensors]") {
  TemporaryFolder folder;
  expect_error(ErrorKind::checkpoint, {"/none", "No such file"},
               [&] { read_safetensors(folder / "none"); });
  expect_error(ErrorKind::checkpoint, {"a folder"}, [&] { read_safetensors(folder.path()); });
  expect_error(ErrorKind::checkpoint, {"device or pipe"}, [] { read_safetensors("/dev/zero"); });
}

TEST_CASE("bad safetensors: an evil name cannot break the error line", "[io][safetensors]") {
  BadFile file;
  file.refuse_header(R"({"x\n\u001b[31m":{}})", 0, {"tensor x\\x0A\\x1B[31m"});
}

TEST_CASE("bad safetensors: random damage is refused or loads, never more", "[io][safetensors]") {
  TemporaryFolder folder;
  const std::string whole = read_file(CONVOY_FIXTURES "/mixed.safetensors");
  std::mt19937 random(1);
  int refused = 0;
  for (int round = 0; round < 5000; ++round) {
    std::string bytes = whole;
    for (int i = 0; i <= round % 3; ++i) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    write_file(folder / "f", bytes);
    try {
      read_safetensors(folder / "f");
    } catch (const Error& error) {
      ++refused;
      REQUIRE(error.kind() == ErrorKind::checkpoint);
    }
  }
  CHECK(refused > 3000);
}
