#include "cli/guarded_observer.h"

#include "kernels/base/error.h"
#include "tests/support/catch.h"

using namespace convoy;
using namespace convoy::cli;

namespace {

/// Counts steps and fails at the second.
struct Broken : Observer {
  void on_step(const StepEvent&) override {
    if (++steps == 2) CONVOY_FAIL(resource, "full");
  }
  void on_note(const std::string&) override { ++notes; }

  int steps = 0, notes = 0;
};

}  // namespace

TEST_CASE("what cannot be written asks the run to stop and is told afterwards") {
  Broken broken;
  int stops = 0;
  GuardedObserver guarded({&broken}, [&] { ++stops; });
  guarded.on_note("a");
  guarded.on_step({});
  CHECK_NOTHROW(guarded.check());
  CHECK(stops == 0);
  guarded.on_step({});
  CHECK(stops == 1);
  CHECK_THROWS_AS(guarded.check(), Error);
  guarded.on_step({});
  guarded.on_note("b");
  CHECK(broken.steps == 2);
  CHECK(broken.notes == 1);
  CHECK(stops == 1);
}
