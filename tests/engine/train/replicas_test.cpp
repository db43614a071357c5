// Training on several workers is training on one: the same losses, gradients, sums and images.
#include <cmath>
#include <cstring>

#include "engine/nn/state.h"
#include "engine/train/setup.h"
#include "tests/engine/train/training.h"
#include "tests/support/catch.h"
#include "tests/support/expect_error.h"
#include "tests/support/temporary_folder.h"

using namespace convoy;
using namespace convoy::testing;

namespace {

Settings in_double(const std::string& bn) {
  Settings settings;
  settings.precision = "fp64";
  settings.devices = {"ref:0"};
  settings.bn = bn;
  settings.batch = 8;
  settings.lr = 0.05;
  settings.seed = 5;
  settings.eval_every = 1;
  return settings;
}

// The largest difference, relative to the larger value.
double difference(const std::vector<double>& a, const std::vector<double>& b) {
  REQUIRE(a.size() == b.size());
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double size = std::max({std::abs(a[i]), std::abs(b[i]), 1e-3});
    worst = std::max(worst, std::abs(a[i] - b[i]) / size);
  }
  return worst;
}

std::vector<double> weights_of(const Network& network) {
  std::vector<double> values;
  for (const auto& [name, tensor] : network.state_dict()) {
    if (!is_floating(tensor.dtype())) continue;
    for (double value : tensor.to_vector<double>()) values.push_back(value);
  }
  return values;
}

// A run on one device and one on several, in double: everything but rounding is the same.
void check_equal_to_one(const Settings& settings, std::int64_t images, int replicas) {
  INFO(replicas << " replicas, bn " << settings.bn << ", batch " << settings.batch);
  Recorder one, several;
  const TrainingJob alone = tiny_job(settings, images);
  run(alone, one);
  const TrainingJob shared = tiny_job(settings, images);
  run_replicas(shared, replicas, several, "ref");
  CHECK(difference(figures(several), figures(one)) < 1e-10);
  CHECK(difference(weights_of(*shared.network), weights_of(*alone.network)) < 1e-10);
}

}  // namespace

TEST_CASE("97 images in batches of 8: every step is that of one device") {
  for (const char* bn : {"frozen", "sync"}) {
    for (int replicas : {2, 3, 4}) check_equal_to_one(in_double(bn), 97, replicas);
  }
  check_equal_to_one(in_double("deferred+sync"), 97, 3);
}

TEST_CASE("fewer images than replicas, accumulation and clipping change nothing either") {
  Settings settings = in_double("sync");
  check_equal_to_one(settings, 3, 4);  // one replica never has an image
  settings.batch = 2;
  check_equal_to_one(settings, 5, 3);
  settings.batch = 5;
  settings.accumulate = 3;
  settings.clip_grad = 0.1;
  check_equal_to_one(settings, 33, 2);
  settings.bn = "frozen";
  settings.micro_batch_size = 2;
  check_equal_to_one(settings, 33, 3);
}

TEST_CASE("replicas that never have an image keep step in every bit") {
  Settings settings;
  settings.batch = 2;
  settings.optimizer = "lars";
  settings.clip_grad = 0.1;
  settings.epochs = 2;
  Recorder events;
  CHECK_NOTHROW(run_replicas(tiny_job(settings, 5), 3, events));  // compares the weights' hashes
}

TEST_CASE("in sync modes replicas of unequal shares run the same micro-batches") {
  Settings settings = in_double("sync");
  settings.batch = 3;
  settings.micro_batch_size = 1;  // 2 and 1 images: the second replica's second one is empty
  Recorder events;
  CHECK_NOTHROW(run_replicas(tiny_job(settings, 7), 2, events, "ref"));
  CHECK(events.steps.size() == 3);
}

TEST_CASE("in fp32 the first step's gradients are those of one device") {
  for (const auto& [bn, tolerance] : {std::pair("frozen", 2e-6), std::pair("sync", 1e-4)}) {
    Settings settings;
    settings.model = "resnet18";
    settings.bn = bn;
    settings.batch = 7;
    settings.steps = 1;
    settings.lr = 0;
    Recorder one, several;
    const TrainingJob alone = small_job(settings, 7);
    run(alone, one);
    const TrainingJob shared = small_job(settings, 7);
    run_replicas(shared, 2, several);
    const NamedTensors a = alone.network->named_parameters();
    const NamedTensors b = shared.network->named_parameters();
    for (std::size_t i = 0; i < a.size(); ++i) {
      const auto x = a[i].second.grad().to_vector<double>();
      const auto y = b[i].second.grad().to_vector<double>();
      double squares = 0, norm = 0;
      for (std::size_t k = 0; k < x.size(); ++k) {
        squares += (x[k] - y[k]) * (x[k] - y[k]);
        norm += x[k] * x[k];
      }
      INFO(bn << ", " << a[i].first);
      CHECK(std::sqrt(squares) <= tolerance * std::sqrt(norm));
    }
  }
}

TEST_CASE("the size of the buckets does not change a bit") {
  Settings settings;
  settings.batch = 6;
  settings.lr = 0.05;
  Recorder whole, cut;
  const TrainingOutcome expected = run_replicas(tiny_job(settings, 20), 3, whole);
  TrainingJob job = tiny_job(settings, 20);
  job.buckets = {.first = 1, .rest = 100};
  const TrainingOutcome outcome = run_replicas(job, 3, cut);
  CHECK(figures(cut) == figures(whole));
  CHECK(outcome.end.weights_hash == expected.end.weights_hash);
}

TEST_CASE("the number of loader threads does not change a bit, a seed does") {
  Settings settings;
  settings.batch = 6;
  settings.lr = 0.05;
  Recorder events;
  const auto hash = [&](int threads, std::uint64_t seed) {
    settings.loader_threads = threads;
    settings.seed = seed;
    return run_replicas(tiny_job(settings, 20), 2, events).end.weights_hash;
  };
  const std::string expected = hash(1, 5);
  CHECK(hash(2, 5) == expected);
  CHECK(hash(1, 6) != expected);
}

TEST_CASE("a run goes on with any number of replicas, each image once") {
  Settings settings = in_double("sync");
  settings.epochs = 2;
  Recorder whole, parts;
  const TrainingJob alone = tiny_job(settings, 60);
  run(alone, whole);
  TemporaryFolder folder;
  settings.checkpoint = folder / "run";
  settings.steps = 3;
  run_replicas(tiny_job(settings, 60), 2, parts, "ref");
  settings.resume = "yes";
  settings.steps = 6;
  run(tiny_job(settings, 60), parts);
  settings.steps.reset();
  const TrainingJob last = tiny_job(settings, 60);
  run_replicas(last, 3, parts, "ref");
  CHECK(difference(figures(parts), figures(whole)) < 1e-9);
  CHECK(difference(weights_of(*last.network), weights_of(*alone.network)) < 1e-9);
}

TEST_CASE("going on with as many replicas equals never having stopped, bit for bit") {
  Settings settings;
  settings.batch = 8;
  settings.epochs = 3;
  settings.lr = 0.02;
  settings.bn = "micro";
  Recorder whole, parts;
  const TrainingOutcome expected = run_replicas(tiny_job(settings, 60), 2, whole);
  TemporaryFolder folder;
  settings.checkpoint = folder / "run";
  settings.epochs = 3;
  settings.eval_every = 1;
  settings.steps = 5;
  run_replicas(tiny_job(settings, 60), 2, parts);
  settings.steps.reset();
  settings.resume = "yes";
  const TrainingOutcome second = run_replicas(tiny_job(settings, 60), 2, parts);
  CHECK(figures(parts) == figures(whole));
  CHECK(second.end.weights_hash == expected.end.weights_hash);
}

TEST_CASE("weights from a file reach every replica") {
  Settings settings;
  settings.batch = 6;
  settings.steps = 1;
  settings.lr = 0;
  settings.bn = "frozen";
  TemporaryFolder folder;
  settings.seed = 3;
  save_weights(*tiny_job(settings, 12).network, folder / "w.safetensors");
  settings.seed = 4;
  settings.weights = folder / "w.safetensors";
  const TrainingJob alone = tiny_job(settings, 12);
  Recorder one, several;
  run(alone, one);
  const TrainingJob shared = tiny_job(settings, 12);
  run_replicas(shared, 3, several);  // compares the weights of all at the start
  CHECK(weights_of(*shared.network) == weights_of(*alone.network));
  CHECK(std::abs(several.steps[0].loss - one.steps[0].loss) < 1e-5);
}

TEST_CASE("one flipped bit in a replica is found after the epoch, and the rank named") {
  Settings settings;
  settings.batch = 6;
  settings.lr = 0.01;
  TrainingJob job = tiny_job(settings, 12);
  std::vector<std::shared_ptr<Network>> others;
  job.make_network = [&, make = job.make_network] { return others.emplace_back(make()); };
  Recorder events;
  events.after_step = [&](std::int64_t step) {
    if (step != 2) return;
    Tensor weight = others.at(1)->named_parameters().back().second;
    std::vector<float> values = weight.to_vector<float>();
    std::uint32_t bits = 0;
    std::memcpy(&bits, &values[1], sizeof bits);
    bits ^= 1;
    std::memcpy(&values[1], &bits, sizeof bits);
    weight.copy_(Tensor::from(values, weight.shape(), weight.options()));
  };
  try {
    run_replicas(job, 3, events);
    FAIL("nothing was thrown");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::communication);
    CHECK(error.rank() == 2);
    CHECK(error.text().starts_with("after epoch 1, the weights of rank 2 differ"));
  }
}

TEST_CASE("a replica that fails stops the others, and its error is told with its rank") {
  Settings settings;
  settings.batch = 6;
  settings.lr = 0.01;
  for (const char* bn : {"micro", "sync"}) {
    settings.bn = bn;
    TrainingJob job = tiny_job(settings, 18);
    std::vector<std::shared_ptr<Network>> others;
    job.make_network = [&, make = job.make_network] { return others.emplace_back(make()); };
    Recorder events;
    events.after_step = [&](std::int64_t step) {
      if (step == 1) Tensor(others.at(0)->named_parameters().front().second).fill_(INFINITY);
    };
    try {
      run_replicas(job, 3, events);
      FAIL("nothing was thrown");
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::numerics);
      // Statistics of all make the losses of all NaN in `sync`: any rank may be the first.
      if (settings.bn == "micro") CHECK(error.rank() == 1);
      CHECK(error.text().starts_with("step 2: the loss is nan; the first value"));
    }
    CHECK(events.steps.size() == 1);
  }
}

TEST_CASE("one value per channel in a replica's share is refused before the first step") {
  Settings settings;
  settings.model = "resnet18";
  settings.batch = 32;
  Recorder events;
  expect_error(ErrorKind::usage, {"layer4.0.bn1", "1 value per channel", "1 image", "--bn sync"},
               [&] { run_replicas(small_job(settings, 36), 4, events); });
  CHECK(events.steps.empty());
}

TEST_CASE("no two workers of a process are on the same cores") {
  Settings settings;
  settings.devices = {"cpu:0", "cpu:1", "cpu:0"};
  check_error([&] { make_runner(tiny_job(settings, 8)); }, ErrorKind::usage,
              "--devices cpu:0,cpu:1,cpu:0: cpu:0 is named twice, which only GPUs may be");
}

TEST_CASE("a stop at one worker's process is one step for all, and saved") {
  Settings settings;
  settings.batch = 6;
  settings.lr = 0.01;
  settings.epochs = 3;
  TemporaryFolder folder;
  settings.checkpoint = folder / "run";
  TrainingJob job = tiny_job(settings, 30);
  StopRequest stop;
  Recorder events;
  events.after_step = [&](std::int64_t step) {
    if (step == 7) stop.request();
  };
  GroupOptions options;
  options.backend = "thread";
  options.timeout = 30;
  options.local_workers = 2;
  const std::unique_ptr<Group> group = Group::make(World(), options);
  job.group = group.get();
  job.settings.devices = {"cpu:0", "cpu:1"};
  const TrainingOutcome outcome = train(job, {&events}, stop);
  CHECK(outcome.stopped);
  CHECK(events.steps.size() == 7);
  CHECK(outcome.checkpoint.ends_with("step-7"));
}
