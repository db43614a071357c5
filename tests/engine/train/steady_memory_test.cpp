// Once two steps have cut the memory to size, a training step asks the system for none: the first
// takes what activations need; in larger networks the second one more, as the optimizer's state
// lies beside them now.
#include "kernels/base/context.h"
#include "tests/engine/train/training.h"
#include "tests/support/catch.h"

using namespace convoy;
using namespace convoy::testing;

namespace {

constexpr int kSteps = 4, kSteadyFrom = 3;

Settings settings_of(const char* optimizer) {
  Settings settings;
  settings.model = "resnet18";
  settings.image_size = 64;
  settings.batch = 4;
  settings.steps = kSteps;
  settings.optimizer = optimizer;
  settings.micro_batches = 2;
  return settings;
}

MemoryStatistics sum_of_statistics(int devices) {
  MemoryStatistics sum;
  for (int i = 0; i < devices; ++i) {
    const MemoryStatistics own = context(Device(fmt::format("cpu:{}", i))).memory().statistics();
    sum.requests += own.requests;
    sum.system_requests += own.system_requests;
  }
  return sum;
}

// What the devices have been asked for when each step ends.
std::vector<MemoryStatistics> statistics_of(const Settings& settings, int devices) {
  // Other cases of this program have left memory that would do.
  for (int i = 0; i < devices; ++i) {
    context(Device(fmt::format("cpu:{}", i))).memory().trim();
  }
  Recorder recorder;
  std::vector<MemoryStatistics> after;
  recorder.after_step = [&](std::int64_t) { after.push_back(sum_of_statistics(devices)); };
  run_replicas(small_job(settings, 4 * kSteps), devices, recorder);
  return after;
}

void check_steady(const std::vector<MemoryStatistics>& after) {
  REQUIRE(after.size() == kSteps);
  for (std::size_t step = kSteadyFrom; step <= after.size(); ++step) {
    CAPTURE(step);
    CHECK(after[step - 1].requests > after[step - 2].requests + 100);  // of the pool
    CHECK(after[step - 1].system_requests == after[step - 2].system_requests);
  }
}

}  // namespace

TEST_CASE("steady steps ask the system for no memory: one device") {
  for (const char* optimizer : {"sgd", "adamw"}) {
    CAPTURE(optimizer);
    check_steady(statistics_of(settings_of(optimizer), 1));
  }
}

TEST_CASE("steady steps ask the system for no memory: two stages") {
  Settings settings = settings_of("sgd");
  settings.stages = "2";
  check_steady(statistics_of(settings, 2));
}

TEST_CASE("steady steps ask the system for no memory: two replicas") {
  check_steady(statistics_of(settings_of("sgd"), 2));
}
