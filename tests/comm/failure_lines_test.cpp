#include "comm/launch/failure_lines.h"

#include <csignal>

#include "comm/launch/job.h"
#include "tests/support/catch.h"

namespace convoy {

TEST_CASE("the first error line is found, however the stream is cut") {
  const std::string text =
      "note\nconvoy: error: no line of ours\nconvoy: error: [rank 12] data: a: b\n"
      "convoy: error: usage: x\ntail";
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    FailureLines lines;
    lines.take(text.substr(0, cut));
    lines.take(text.substr(cut));
    REQUIRE(lines.first());
    CHECK(*lines.first() == "convoy: error: [rank 12] data: a: b");
    CHECK(!lines.first_is_last());
  }
}

TEST_CASE("a line that stands last is not to be said again") {
  FailureLines lines;
  lines.take("convoy: error: data: x\n");
  CHECK(lines.first_is_last());
  lines.take("more\n");
  CHECK(!lines.first_is_last());
}

TEST_CASE("the kind of an error line") {
  CHECK(kind_of("convoy: error: numerics: x") == ErrorKind::numerics);
  CHECK(kind_of("convoy: error: [rank 3] communication: dead") == ErrorKind::communication);
  CHECK(!kind_of("convoy: error: [rank 3"));
  CHECK(!kind_of("convoy: error: datum: x"));
  CHECK(!kind_of("convoy: data: x"));
}

TEST_CASE("the launcher's exit code") {
  const std::string data = "convoy: error: [rank 1] data: x";
  struct Row {
    int code, asked;
    std::optional<std::string> failure;
    int expected;
    bool again;
  };
  const Row rows[] = {
      {0, 0, {}, 0, false},
      {3, 0, data, 3, false},
      {137, 0, data, 3, false},  // killed by mpirun after the failure
      {137, 0, "convoy: error: [rank 2] communication: dead: x", 5, true},
      {139, 0, {}, 5, true},  // a rank that is none of ours
      {7, 0, {}, 7, false},
      {143, 0, {}, 143, false},  // SIGTERM to one rank
      {143, SIGTERM, {}, 143, false},
      {138, SIGTERM, {}, 143, false},  // SIGUSR1 came before anyone took it
      {0, SIGTERM, {}, 0, false},      // it was done already
      {137, SIGTERM, "convoy: error: [rank 2] communication: dead: x", 5, false},
      {130, SIGINT, {}, 130, false},
      {1, SIGINT, {}, 130, false},
      {130, 0, {}, 130, false},
  };
  for (const Row& row : rows) {
    const JobEnd end = {row.code, row.asked, row.failure, false};
    INFO(row.code << " " << row.asked);
    CHECK(exit_code(end) == row.expected);
    CHECK(worth_a_restart(end) == row.again);
  }
}

}  // namespace convoy
