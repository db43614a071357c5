// Runs in which images cannot be read: what counts, what is said, and that resume stays exact.
#include <cmath>
#include <set>

#include "engine/data/order.h"
#include "tests/engine/train/training.h"
#include "tests/support/catch.h"
#include "tests/support/expect_error.h"
#include "tests/support/temporary_folder.h"

using namespace convoy;
using namespace convoy::testing;

namespace {

// A data set some of whose images are bad.
class Damaged : public Dataset {
 public:
  Damaged(std::shared_ptr<const Dataset> whole, std::set<std::int64_t> bad)
      : whole_(std::move(whole)), bad_(std::move(bad)) {}

  std::int64_t size() const override { return whole_->size(); }
  const std::vector<std::string>& class_names() const override { return whole_->class_names(); }
  std::int64_t label(std::int64_t i) const override { return whole_->label(i); }
  std::string image_path_or_name(std::int64_t i) const override {
    return "image-" + std::to_string(i);
  }
  Image read(std::int64_t i) const override {
    if (bad_.contains(i)) CONVOY_FAIL(data, "image-{}: is damaged", i);
    return whole_->read(i);
  }
  std::string fingerprint() const override { return whole_->fingerprint(); }

 private:
  std::shared_ptr<const Dataset> whole_;
  std::set<std::int64_t> bad_;
};

TrainingJob damaged_job(Settings settings, std::int64_t images, std::set<std::int64_t> bad) {
  settings.model = "resnet18";
  TrainingJob job = small_job(settings, images);
  job.data.train = std::make_shared<Damaged>(job.data.train, std::move(bad));
  job.data.validation.reset();
  return job;
}

}  // namespace

TEST_CASE("a bad image stops the run, or is passed over and said once") {
  Settings settings;
  settings.batch = 5;
  settings.lr = 0.001;
  Recorder events;
  expect_error(ErrorKind::data, {"image-", "is damaged"}, [&] {
    run(damaged_job(settings, 20, {3, 4, 11, 19}), events);
  });

  settings.bad_images = "skip";
  Recorder skipping;
  run(damaged_job(settings, 20, {3, 4, 11, 19}), skipping);
  std::int64_t images = 0;
  for (const StepEvent& step : skipping.steps) images += step.images;
  CHECK(images == 16);
  REQUIRE(skipping.warnings.size() == 1);
  CHECK(skipping.warnings[0].find("skipped 4 of 20") != std::string::npos);
  for (const char* name : {"image-3", "image-4", "image-11", "image-19"}) {
    CHECK(skipping.warnings[0].find(name) != std::string::npos);
  }
}

TEST_CASE("replicas pass over the same images, and weigh those that are left") {
  Settings settings;
  settings.precision = "fp64";
  settings.devices = {"ref:0"};
  settings.batch = 5;
  settings.lr = 0.01;
  settings.bad_images = "skip";
  auto damaged = [&](const std::string& bn) {
    settings.bn = bn;
    TrainingJob job = tiny_job(settings, 20);
    // Of the third batch in the order of this seed nothing is left.
    std::set<std::int64_t> bad = {3, 4, 11};
    const auto order = epoch_order(settings.seed, 1, 20);
    bad.insert(order.begin() + 10, order.begin() + 15);
    job.data.train = std::make_shared<Damaged>(job.data.train, bad);
    job.data.validation.reset();
    return job;
  };
  for (const char* bn : {"frozen", "sync"}) {
    Recorder one, several;
    run(damaged(bn), one);
    run_replicas(damaged(bn), 3, several, "ref");
    REQUIRE(one.steps.size() == several.steps.size());
    for (std::size_t i = 0; i < one.steps.size(); ++i) {
      CHECK(one.steps[i].images == several.steps[i].images);
      CHECK(std::abs(one.steps[i].loss - several.steps[i].loss) < 1e-10);
      CHECK(std::abs(one.steps[i].grad_norm - several.steps[i].grad_norm) < 1e-9);
    }
    CHECK(several.steps[2].images == 0);
    CHECK(several.warnings == one.warnings);
  }
}

TEST_CASE("a rest that batch norm cannot normalise is left out and said") {
  Settings settings;
  settings.batch = 2;
  settings.lr = 0.001;
  settings.bad_images = "skip";
  Recorder events;
  run(damaged_job(settings, 6, {2}), events);
  REQUIRE(events.steps.size() == 3);
  std::int64_t images = 0;
  for (const StepEvent& step : events.steps) images += step.images;
  CHECK(images == 4);
  REQUIRE(events.warnings.size() == 2);
  CHECK(events.warnings[0].find("batch norm needs 2") != std::string::npos);
}

TEST_CASE("resume is exact after a step without images") {
  const std::set<std::int64_t> bad = {0, 1, 2, 3, 4, 5};
  Settings settings;
  settings.batch = 1;
  settings.image_size = 64;  // maps of 2x2: one image can be normalised
  settings.optimizer = "adamw";
  settings.lr = 0.001;
  settings.bad_images = "skip";
  Recorder whole;
  const TrainingOutcome expected = run(damaged_job(settings, 10, bad), whole);
  TemporaryFolder folder;
  settings.checkpoint = folder / "run";
  settings.epochs = 1;
  settings.steps = 7;
  Recorder parts;
  run(damaged_job(settings, 10, bad), parts);
  settings.steps.reset();
  settings.resume = "yes";
  const TrainingOutcome second = run(damaged_job(settings, 10, bad), parts);
  CHECK(figures(parts) == figures(whole));
  CHECK(second.end.weights_hash == expected.end.weights_hash);
}
