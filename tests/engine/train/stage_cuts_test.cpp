// Where stages begin: by name, or measured.
#include "engine/train/stage_cuts.h"

#include <algorithm>

#include "models/models.h"
#include "tests/engine/train/training.h"
#include "tests/support/catch.h"
#include "tests/support/expect_error.h"

using namespace convoy;
using namespace convoy::testing;

TEST_CASE("cuts by name are the first layers of the later stages") {
  const auto network = make_model_without_values("resnet18", 10);
  const std::vector<int> cuts = cuts_by_name(*network, "layer2,layer3.1.conv2", 3);
  REQUIRE(cuts.size() == 2);
  CHECK(network->layers()[static_cast<std::size_t>(cuts[0])].name == "layer2.0.conv1");
  CHECK(network->layers()[static_cast<std::size_t>(cuts[1])].name == "layer3.1.conv2");
  CHECK(cut_text(*network, cuts) == "layer2,layer3.1.conv2");
  CHECK(cut_text(*network, {}) == "auto");
}

TEST_CASE("wrong cuts are usage errors that say what is wrong") {
  const auto network = make_model_without_values("resnet18", 10);
  const auto fails = [&](const std::string& cut, int stages, const char* why) {
    expect_error(ErrorKind::usage, {cut, why}, [&] { cuts_by_name(*network, cut, stages); });
  };
  fails("layer9", 2, "expected one of conv1");
  fails("layer3", 3, "1 cut(s) are named, but 3 stages have 2");
  fails("layer2,layer3", 2, "2 cut(s) are named, but 2 stages have 1");
  fails("layer3,layer2", 3, "layer2 comes before layer3");
  fails("layer3,layer3.0", 3, "no layer stands between layer3 and layer3.0");
  fails("conv1", 2, "the first stage would be empty");
}

TEST_CASE("cut auto gives as many stages of real work") {
  Settings settings;
  settings.stages = std::to_string(3);
  settings.batch = 4;
  settings.micro_batch_size = 2;
  const TrainingJob job = small_job(settings, 8);
  Ranks ranks(nullptr, {1, 3, 1});
  const std::vector<int> cuts = choose_cuts(job, ranks);
  REQUIRE(cuts.size() == 2);
  CHECK(0 < cuts[0]);
  CHECK(cuts[0] < cuts[1]);
  CHECK(cuts[1] < std::ssize(job.network->layers()));
  CHECK(choose_cuts(job, Ranks(nullptr)).empty());
}
