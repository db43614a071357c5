// The text format: what is written is read again; what is wrong is named by line and word.
#include "engine/parallel/pipeline/schedule_text.h"

#include "tests/engine/parallel/pipeline/schedule_cases.h"
#include "tests/support/catch.h"
#include "tests/support/expect_error.h"

namespace convoy::testing {
namespace {

TEST_CASE("A schedule is written as one line per worker") {
  const Schedule schedule = make_schedule(request_of("1f1b", 2, 1));
  CHECK(write_schedule(schedule) ==
        "F 0.0  SA 0.0  RG 0.0  I 0.0  W 0.0  AR 0  ST 0\n"
        "RA 1.0  F 1.0  I 1.0  SG 1.0  W 1.0  AR 1  ST 1\n");
  CHECK(parse_schedule(write_schedule(schedule)) == schedule);
}

TEST_CASE("Spaces, comments, empty lines and a missing last newline do not matter") {
  const Schedule schedule = parse_schedule("# two workers\n\n  F 0.0\tI   0.0 \r\n \nF 1.12 AR 1");
  const ScheduleLine first = {{ScheduleOp::forward, 0, 0}, {ScheduleOp::backward_input, 0, 0}};
  const ScheduleLine second = {{ScheduleOp::forward, 1, 12}, {ScheduleOp::all_reduce, 1, 0}};
  CHECK(schedule == Schedule{{first, second}});
}

TEST_CASE("A wrong word is named with its line and what was expected") {
  auto check = [](const char* text, const char* wanted) {
    check_error([&] { parse_schedule(text, "my.txt"); }, ErrorKind::usage, wanted);
  };
  check("# head\nF 0.0 B 0.0\n",
        "my.txt: line 2, word 3: 'B', expected one of RA, SA, F, RG, SG, I, W, AR, ST");
  check("F 0\n", "my.txt: line 1, word 2: '0', expected stage.micro-batch");
  check("F 0.x\n", "my.txt: line 1, word 2: '0.x', expected stage.micro-batch");
  check("F -1.0\n", "my.txt: line 1, word 2: '-1.0', expected stage.micro-batch");
  check("F 0.1.2\n", "my.txt: line 1, word 2: '0.1.2', expected stage.micro-batch");
  check("F 0.99999999999\n", "my.txt: line 1, word 2: '0.99999999999', expected stage.micro-batch");
  check("F 0.0 W\n", "my.txt: line 1, word 4: the line ends, expected stage.micro-batch");
  check("F 0.0 AR 0.0\n", "my.txt: line 1, word 4: '0.0', expected a stage");
  check("# nothing\n", "my.txt: no worker's line, expected at least one");
}

}  // namespace
}  // namespace convoy::testing
