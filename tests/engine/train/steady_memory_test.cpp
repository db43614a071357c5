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

std::uint64_t system_requests(int devices) {
  std::uint64_t sum = 0;
  for (int i = 0; i < devices; ++i) {
    sum += context(Device(fmt::format("cpu:{}", i))).memory().statistics().system_requests;
  }
  return sum;
}

// What has been asked for when each step ends, from the start of the run on.
std::vector<std::uint64_t> requests_of(const Settings& settings, int devices) {
  // Other cases of this program have left memory that would do.
  for (int i = 0; i < devices; ++i) {
    context(Device(fmt::format("cpu:{}", i))).memory().trim();
  }
  const std::uint64_t before = system_requests(devices);
  Recorder recorder;
  std::vector<std::uint64_t> after;
  recorder.after_step = [&](std::int64_t) { after.push_back(system_requests(devices) - before); };
  run_replicas(small_job(settings, 4 * kSteps), devices, recorder);
  return after;
}

void check_steady(const std::vector<std::uint64_t>& requests) {
  REQUIRE(requests.size() == kSteps);
  CHECK(requests.front() > 5);
  for (std::size_t step = kSteadyFrom; step <= requests.size(); ++step) {
    CAPTURE(step);
    CHECK(requests[step - 1] == requests[step - 2]);
  }
}

}  // namespace

TEST_CASE("steady steps ask the system for no memory: one device") {
  for (const char* optimizer : {"sgd", "adamw"}) {
    CAPTURE(optimizer);
    check_steady(requests_of(settings_of(optimizer), 1));
  }
}

TEST_CASE("steady steps ask the system for no memory: two stages") {
  Settings settings = settings_of("sgd");
  settings.stages = "2";
  check_steady(requests_of(settings, 2));
}

TEST_CASE("steady steps ask the system for no memory: two replicas") {
  check_steady(requests_of(settings_of("sgd"), 2));
}
