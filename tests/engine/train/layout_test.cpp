// Which worker holds which stages of which replica, and what does not fit.
#include "engine/train/layout.h"

#include "tests/support/catch.h"
#include "tests/support/expect_error.h"

namespace convoy {
namespace {

using testing::expect_error;

Settings settings_of(const std::string& stages, const std::string& schedule = "1f1b") {
  Settings settings;
  settings.stages = stages;
  settings.schedule = schedule;
  return settings;
}

TEST_CASE("layout: replicas are rows of pipeline workers") {
  const Layout layout = layout_of(settings_of("3"), 6);
  CHECK(layout == Layout{2, 3, 1});
  CHECK(layout.stages() == 3);
  CHECK(layout.world() == 6);
  CHECK(layout.replica_of(4) == 1);
  CHECK(layout.position_of(4) == 1);
  CHECK(layout.rank_of(1, 1) == 4);
  CHECK(layout.stages_of(5) == std::vector<int>{2});
  CHECK(layout.holds_first_stage(3));
  CHECK_FALSE(layout.holds_first_stage(5));
  CHECK(layout.holds_last_stage(2));
  CHECK(describe(layout) == "2 replicas x 3 stages");
}

TEST_CASE("layout: left open it is data parallelism") {
  CHECK(layout_of(Settings(), 4) == Layout{4, 1, 1});
  CHECK(layout_of(settings_of("1", "interleaved"), 2) == Layout{2, 1, 1});
  CHECK(describe(layout_of(Settings(), 1)) == "1 replica");
}

TEST_CASE("layout: interleaved divides the stages among fewer workers") {
  Settings settings = settings_of("4", "interleaved");
  const Layout layout = layout_of(settings, 2);
  CHECK(layout == Layout{1, 2, 2});
  CHECK(layout.stages_of(1) == std::vector<int>{1, 3});
  CHECK(describe(layout) == "4 stages");
  settings.stages_per_worker = 3;
  expect_error(ErrorKind::usage, {"--stages 4", "3 stages", "multiple of 3"},
               [&] { layout_of(settings, 2); });
}

TEST_CASE("layout: numbers that do not fit are said") {
  expect_error(ErrorKind::usage, {"--stages 2", "3 worker(s)", "multiple"},
               [] { layout_of(settings_of("2"), 3); });
  Settings settings = settings_of("2");
  settings.replicas = 3;
  expect_error(ErrorKind::usage, {"--replicas 3", "--stages 2", "6 worker(s)", "there are 4"},
               [&] { layout_of(settings, 4); });
  expect_error(ErrorKind::usage, {"--stages auto", "number"},
               [] { layout_of(settings_of("auto"), 4); });
}

}  // namespace
}  // namespace convoy
