#include "kernels/base/error.h"

#include "kernels/base/dtype.h"
#include "tests/support/expect_error.h"

namespace convoy::testing {

TEST_CASE("error: one line with rank, kind and text") {
  const Error error(ErrorKind::data, "idx: 3 images, expected 4", "idx.cpp:12");
  CHECK(describe(error) == "data: idx: 3 images, expected 4");
  CHECK(describe(error.with_rank(2)) == "[rank 2] data: idx: 3 images, expected 4");
  CHECK(error.with_rank(2).place() == "idx.cpp:12");
  CHECK(std::string(error.what()) == error.text());
  CHECK(!error.rank().has_value());
}

TEST_CASE("error: kinds have the names and numbers of the exit codes") {
  const ErrorKind kinds[] = {ErrorKind::internal,   ErrorKind::usage,         ErrorKind::data,
                             ErrorKind::checkpoint, ErrorKind::communication, ErrorKind::numerics,
                             ErrorKind::resource};
  const char* names[] = {"internal",      "usage",    "data",    "checkpoint",
                         "communication", "numerics", "resource"};
  for (int i = 0; i < 7; ++i) {
    CHECK(static_cast<int>(kinds[i]) == i + 1);
    CHECK(std::string(name(kinds[i])) == names[i]);
  }
}

TEST_CASE("error: the macros say kind, values and place") {
  const int channels = 3;
  const Error failed = error_of([&] { CONVOY_FAIL(numerics, "loss is {}", "nan"); });
  CHECK(describe(failed) == "numerics: loss is nan");
  CHECK(failed.place().find("error_test.cpp:") != std::string::npos);
  check_error([&] { CONVOY_CHECK(channels == 4, "x has {} channels", channels); }, ErrorKind::usage,
              "x has 3 channels");
  check_error([&] { CONVOY_DCHECK(channels == 4, "x has {} channels", channels); },
              ErrorKind::internal, "x has 3 channels");
  CHECK_NOTHROW([&] { CONVOY_CHECK(channels == 3, "never"); }());
  CHECK_NOTHROW([&] { CONVOY_DCHECK(channels == 3, "never"); }());
}

TEST_CASE("dtype: sizes, names, which are floating") {
  struct Row {
    DType dtype;
    std::size_t size;
    const char* name;
    bool floating;
  };
  for (const Row& row : {Row{DType::f32, 4, "f32", true}, Row{DType::f64, 8, "f64", true},
                         Row{DType::bf16, 2, "bf16", true}, Row{DType::i64, 8, "i64", false},
                         Row{DType::i32, 4, "i32", false}, Row{DType::u8, 1, "u8", false}}) {
    CHECK(size_of(row.dtype) == row.size);
    CHECK(std::string(name(row.dtype)) == row.name);
    CHECK(is_floating(row.dtype) == row.floating);
  }
  CHECK(dtype_of<float> == DType::f32);
  CHECK(dtype_of<std::int64_t> == DType::i64);
}

}  // namespace convoy::testing
