#include "engine/train/same_weights.h"

#include "tests/support/catch.h"
#include "tests/support/expect_error.h"

using namespace convoy;
using namespace convoy::testing;

TEST_CASE("equal hashes pass") {
  CHECK_NOTHROW(check_same_weights({"a"}, "after epoch 1"));
  CHECK_NOTHROW(check_same_weights({"a", "a", "a"}, "after epoch 1"));
}

TEST_CASE("of three replicas and more the odd one is named") {
  for (int odd : {0, 1, 2}) {
    std::vector<std::string> hashes(3, "aaa");
    hashes[static_cast<std::size_t>(odd)] = "bbb";
    try {
      check_same_weights(hashes, "after epoch 4");
      FAIL("nothing was thrown");
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::communication);
      CHECK(error.rank() == odd);
      CHECK(error.text() == "after epoch 4, the weights of rank " + std::to_string(odd) +
                                " differ from those of 2 of 3 ranks: hash bbb, expected aaa");
    }
  }
}

TEST_CASE("without a majority both sides are named") {
  expect_error(ErrorKind::communication, {"ranks 0 and 1 differ", "aaa and bbb", "1 of 2"}, [] {
    check_same_weights({"aaa", "bbb"}, "at the start");
  });
  expect_error(ErrorKind::communication, {"ranks 0 and 2 differ", "2 of 4"}, [] {
    check_same_weights({"a", "a", "b", "b"}, "at the start");
  });
}
