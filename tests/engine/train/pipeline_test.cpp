// A pipeline does what one device does: losses, norms, gradients, optimizer state, running
// statistics and weights, to the last bit.
#include <set>

#include "tests/engine/train/pipeline_runs.h"
#include "tests/support/catch.h"
#include "tests/support/expect_error.h"

using namespace convoy;
using namespace convoy::testing;

namespace {

// The first array that differs, or how the lists do.
std::string difference(const std::vector<NamedArray>& a, const std::vector<NamedArray>& b) {
  if (a.size() != b.size()) return fmt::format("{} arrays, {} arrays", a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!(a[i] == b[i])) return a[i].name + " / " + b[i].name;
  }
  return "";
}

void check_equal(const RunResult& found, const RunResult& expected) {
  CHECK(found.losses == expected.losses);
  CHECK(found.norms == expected.norms);
  CHECK(difference(found.gradients, expected.gradients) == "");
  CHECK(difference(found.tensors.model, expected.tensors.model) == "");
  CHECK(difference(found.tensors.optimizer, expected.tensors.optimizer) == "");
  CHECK(found.tensors.optimizer_steps == expected.tensors.optimizer_steps);
  CHECK(std::set<std::string>(found.hashes.begin(), found.hashes.end()) ==
        std::set<std::string>(expected.hashes.begin(), expected.hashes.end()));
  CHECK(found.sums.images == expected.sums.images);
  CHECK(found.sums.top1 == expected.sums.top1);
}

void check_as_alone(const PipelineCase& each) {
  INFO(describe(each));
  check_equal(run_pipeline(each), run_alone(each));
}

}  // namespace

TEST_CASE("two stages, fill-drain: every bit is that of one device") {
  check_as_alone({.workers = 2, .schedule = {.name = "fill-drain"}, .rule = {.size = 3}});
}
