// Each check of the verifier with a broken table: a sound one in which a few words are changed.
#include "engine/parallel/pipeline/verify_schedule.h"

#include <string>

#include "engine/parallel/pipeline/expand.h"
#include "engine/parallel/pipeline/schedule_text.h"
#include "tests/engine/parallel/pipeline/schedule_cases.h"
#include "tests/support/catch.h"
#include "tests/support/expect_error.h"

namespace convoy::testing {
namespace {

// The text of a sound table with one part replaced, once.
Schedule broken(std::string text, const std::string& part, const std::string& by) {
  const std::size_t place = text.find(part);
  REQUIRE(place != text.npos);
  return parse_schedule(text.replace(place, part.size(), by));
}

std::string two_stages() {
  return write_schedule(make_schedule(request_of("1f1b", 2, 3)));
}

void refused(const std::string& part, const std::string& by, const std::string& error) {
  const Schedule schedule = broken(two_stages(), part, by);
  check_error([&] { verify_schedule(schedule, task_of(2, 3)); }, ErrorKind::usage,
              "schedule: " + error);
}

TEST_CASE("Each stage has one worker, each worker a stage") {
  refused("F 0.1", "F 1.1", "RA 1.0 of worker 1: stage 1 is worker 0's");
  refused("F 0.1", "F 2.1", "F 2.1 of worker 0: stages are 0 to 1");
  expect_error(ErrorKind::usage, {"stage 1 is empty, no worker has it"},
               [] { check_stages(parse_schedule("F 0.0\n"), 2); });
  expect_error(ErrorKind::usage, {"worker 1 has nothing to do"}, [] {
    check_stages(Schedule{{{{ScheduleOp::forward, 0, 0}}, {}}}, 1);
  });
  expect_error(ErrorKind::usage, {"0 stages"}, [] { check_stages({}, 0); });
}

TEST_CASE("A lost, doubled, unknown or misplaced micro-batch is named") {
  refused("W 1.1  ", "", "W 1.1 is missing");
  refused("F 0.1  ", "F 0.0  ", "F 0.0 stands there twice");
  refused("I 0.2", "I 0.7", "I 0.7: there is no micro-batch 7");
  refused("W 1.0  RA 1.1  F 1.1  I 1.1  SG 1.1  W 1.1",
          "W 1.1  RA 1.1  F 1.1  I 1.1  SG 1.1  W 1.0",
          "W 1.1 stands before W 1.0, expected ascending micro-batches");
  refused("F 1.0  I 1.0", "I 1.0  F 1.0", "I 1.0 stands before F 1.0");
  refused("I 1.2  SG 1.2  W 1.2", "W 1.2  I 1.2  SG 1.2", "W 1.2 stands before I 1.2");
  expect_error(ErrorKind::usage, {"the windows' micro-batches do not ascend"}, [] {
    check_micro_batches(parse_schedule(two_stages()), {2, {{0, 1}, {1, 2}}});
  });
}

TEST_CASE("Stages of one worker follow each other") {
  auto refused_line = [](const char* line, const char* error) {
    expect_error(ErrorKind::usage, {error},
                 [&] { verify_schedule(parse_schedule(line), task_of(2, 1)); });
  };
  refused_line("F 1.0 F 0.0 I 1.0 W 1.0 I 0.0 W 0.0 AR 1 AR 0 ST 0 ST 1\n",
               "F 1.0 stands before F 0.0");
  refused_line("F 0.0 F 1.0 I 0.0 W 0.0 I 1.0 W 1.0 AR 1 AR 0 ST 0 ST 1\n",
               "I 0.0 stands before I 1.0");
  refused_line("F 0.0 SA 0.0 F 1.0 I 1.0 W 1.0 I 0.0 W 0.0 AR 1 AR 0 ST 0 ST 1\n",
               "SA 0.0: there is no other worker to exchange it with");
  CHECK_NOTHROW(verify_schedule(
      parse_schedule("F 0.0 F 1.0 I 1.0 W 1.0 I 0.0 W 0.0 AR 1 AR 0 ST 0 ST 1\n"), task_of(2, 1)));
}

TEST_CASE("A dropped, doubled, swapped or misplaced transfer is named") {
  refused("RA 1.1  ", "", "RA 1.1 of worker 1 is missing");
  refused("SG 1.2  ", "", "SG 1.2 of worker 1 is missing");
  refused("RG 0.1  ", "RG 0.1  RG 0.1  ", "RG 0.1 of worker 0 stands there 2 times");
  refused("SA 0.0  F 0.1  SA 0.1", "F 0.1  SA 0.1  SA 0.0",
          "message 1 of its channel is SA 0.1 at worker 0, RA 1.0 at worker 1");
  refused("I 1.0  SG 1.0  W 1.0  RA 1.1  F 1.1  I 1.1  SG 1.1",
          "I 1.0  W 1.0  RA 1.1  F 1.1  I 1.1  SG 1.1  SG 1.0",
          "message 1 of its channel is SG 1.1 at worker 1, RG 0.0 at worker 0");
  refused("F 0.0  SA 0.0", "SA 0.0  F 0.0", "SA 0.0 stands before F 0.0");
  refused("RA 1.0  F 1.0", "F 1.0  RA 1.0", "F 1.0 stands before RA 1.0");
  refused("I 1.0  SG 1.0", "SG 1.0  I 1.0", "SG 1.0 stands before I 1.0");
  refused("RG 0.0  I 0.0", "I 0.0  RG 0.0", "I 0.0 stands before RG 0.0");
  refused("F 0.0  ", "RA 0.0  F 0.0  ", "RA 0.0: there is no other worker to exchange it with");
  refused("F 1.0  ", "F 1.0  SA 1.0  ", "SA 1.0: there is no other worker to exchange it with");
  refused("SA 0.0  ", "SA 0.0  SA 0.7  ", "SA 0.7: there is no micro-batch 7");
}

TEST_CASE("AR and ST end a stage's window") {
  refused("W 0.2  AR 0", "AR 0  W 0.2", "AR 0 stands before W 0.2");
  refused("AR 1  ", "", "ST 1 without AR 1 before it");
  refused("  ST 1", "", "ST 1 is missing in window 0");
  refused("  AR 0  ST 0", "", "AR 0 is missing in window 0");
  refused("AR 0  ST 0", "AR 0  AR 0  ST 0", "AR 0 stands there once too often");
  refused("AR 0  ST 0", "ST 0  AR 0", "ST 0 without AR 0 before it");
  refused("W 1.1  RA 1.2  F 1.2  I 1.2  SG 1.2  W 1.2  AR 1  ST 1",
          "RA 1.2  F 1.2  I 1.2  SG 1.2  AR 1  ST 1  W 1.1  W 1.2", "AR 1 stands before W 1.1");
  refused("AR 0  ST 0", "AR 0  ST 0  AR 0", "AR 0 stands there once too often");
}

TEST_CASE("The next window begins after ST") {
  const Schedule window = make_schedule(request_of("1f1b", 2, 1));
  const std::string sound = write_schedule(join_windows({window, window}));
  const ScheduleTask task = {2, {{0}, {1}}};
  CHECK_NOTHROW(verify_schedule(parse_schedule(sound), task));
  auto refused = [&](const char* part, const char* by, const char* error) {
    check_error([&] { verify_schedule(broken(sound, part, by), task); }, ErrorKind::usage, error);
  };
  refused("ST 0  F 0.1", "F 0.1  ST 0", "schedule: F 0.1 stands before ST 0 of the window before");
  refused("W 0.0  AR 0  ST 0  F 0.1", "F 0.1  W 0.0  AR 0  ST 0",
          "schedule: F 0.1 stands before ST 0 of the window before");
  refused("W 0.1  AR 0", "AR 0  W 0.1", "schedule: AR 0 stands before W 0.1");
}

TEST_CASE("Nothing is sent or received across the last ST, where workers meet") {
  const Schedule window = make_schedule(request_of("1f1b", 2, 1));
  const std::string sound = write_schedule(join_windows({window, window}));
  auto refused = [&](const char* part, const char* by, const char* error) {
    check_error(
        [&] {
          verify_schedule(broken(sound, part, by), {2, {{0}, {1}}});
        },
        ErrorKind::usage, error);
  };
  refused("ST 1  RA 1.1", "RA 1.1  ST 1",
          "schedule: RA 1.1 stands before the last ST of the window before, where all workers wait "
          "for each other");
  refused("SG 1.0  W 1.0  AR 1  ST 1", "W 1.0  AR 1  ST 1  SG 1.0",
          "schedule: SG 1.0 stands after the last ST of its window, where all workers wait for "
          "each other");
  // Of two stages of a worker it is the second ST.
  const std::string two = write_schedule(make_schedule(request_of("interleaved", 2, 2, 2)));
  CHECK_NOTHROW(verify_schedule(parse_schedule(two), task_of(4, 2)));
}

TEST_CASE("A sound table that deadlocks is refused") {
  const Schedule schedule = make_schedule(request_of("1f1b", 2, 3));
  CHECK_NOTHROW(verify_schedule(schedule, task_of(2, 3), {1}));
  expect_error(ErrorKind::usage, {"deadlock with channels of 0", "worker 0 at", "worker 1 at"},
               [&] { verify_schedule(schedule, task_of(2, 3), {0}); });
}

TEST_CASE("Replicas begin collectives in one order") {
  const std::string text = "F 0.0 F 1.0 I 1.0 W 1.0 I 0.0 W 0.0 AR 1 AR 0 ST 0 ST 1\n";
  const Schedule sound = parse_schedule(text);
  CHECK_NOTHROW(check_same_collectives({sound, broken(text, "ST 0 ST 1", "ST 1 ST 0")}));
  expect_error(ErrorKind::usage,
               {"collective 5 of worker 0 is AR 0 on replica 1, AR 1 on replica 0"}, [&] {
                 check_same_collectives({sound, broken(text, "AR 1 AR 0", "AR 0 AR 1")});
               });
  expect_error(ErrorKind::usage, {"collective 6 of worker 0 is none on replica 1"}, [&] {
    check_same_collectives({sound, broken(text, "AR 0 ", "")});
  });
  expect_error(ErrorKind::usage, {"2 workers on replica 1, 1 on replica 0"}, [&] {
    check_same_collectives({sound, make_schedule(request_of("1f1b", 2, 1))});
  });
}

}  // namespace
}  // namespace convoy::testing
