// verify says that layouts equal one device, and finds each fault that a runner could have: tests
// wrap the runner and do it wrong.
#include "engine/train/verify.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "engine/autograd/grad_mode.h"
#include "engine/nn/state.h"
#include "engine/train/batch_feed.h"
#include "tests/engine/train/training.h"
#include "tests/support/catch.h"
#include "tests/support/expect_error.h"
#include "tests/support/temporary_folder.h"

using namespace convoy;
using namespace convoy::testing;

namespace {

using MakeRunner = std::function<std::unique_ptr<StepRunner>(const TrainingJob&)>;

Settings settings_of(const std::string& bn) {
  Settings settings;
  settings.bn = bn;
  settings.batch = 8;
  settings.lr = 0.05;
  settings.seed = 5;
  return settings;
}

VerifyResult verify_workers(TrainingJob job, int workers, std::int64_t steps,
                            const MakeRunner& make = make_runner) {
  GroupOptions options;
  options.backend = "thread";
  options.timeout = 30;
  options.local_workers = workers;
  options.on_failure = [](const Error&) {};
  std::unique_ptr<Group> group;
  if (workers > 1) group = Group::make(World(), options);
  job.group = group.get();
  job.settings.devices.clear();
  const char* type = job.settings.precision == "fp64" ? "ref" : "cpu";
  for (int i = 0; i < workers; ++i) job.settings.devices.push_back(fmt::format("{}:{}", type, i));
  return verify(job, {.steps = steps, .make = make});
}

void check_equal(const VerifyResult& result, std::int64_t steps) {
  INFO("step " << result.first.value_or(FirstDifference()).step);
  INFO(result.first.value_or(FirstDifference()).phase);
  INFO(result.first.value_or(FirstDifference()).layer);
  CHECK(result.equal);
  CHECK_FALSE(result.first.has_value());
  CHECK(result.steps == steps);
  CHECK(std::isfinite(result.loss));
  CHECK(result.grad_norm > 0);
  for (const LargestDifference* largest : {&result.loss_difference, &result.norm_difference,
                                           &result.gradient, &result.statistic, &result.weight}) {
    CHECK(largest->value == 0);
    CHECK(largest->name.empty());
  }
}

/// A runner that does a step wrong.
class Faulty : public StepRunner {
 public:
  using Step = std::function<StepResult(StepRunner&, Network&, const Window&, BatchFeed&)>;
  Faulty(std::unique_ptr<StepRunner> inner, std::shared_ptr<Network> network, Step step)
      : inner_(std::move(inner)), network_(std::move(network)), step_(std::move(step)) {}

  StepResult step(const Window& window, BatchFeed& feed) override {
    return step_(*inner_, *network_, window, feed);
  }
  EvalSums evaluate(const HostBatch& batch) override { return inner_->evaluate(batch); }
  Outputs predict(const HostBatch& batch) override { return inner_->predict(batch); }
  std::vector<std::string> weights_hashes() override { return inner_->weights_hashes(); }
  std::vector<NamedArray> gradients() override { return inner_->gradients(); }
  TrainingTensors tensors() override { return inner_->tensors(); }
  std::uint64_t tensor_bytes() const override { return inner_->tensor_bytes(); }
  void load(const TrainingTensors& tensors) override { inner_->load(tensors); }

 private:
  std::unique_ptr<StepRunner> inner_;
  std::shared_ptr<Network> network_;
  Step step_;
};

MakeRunner faulty(const Faulty::Step& step) {
  return [step](const TrainingJob& job) {
    return std::make_unique<Faulty>(make_runner(job), job.network, step);
  };
}

/// Steps 2 of 3 go wrong afterwards.
MakeRunner spoiled(const std::function<void(Network&)>& spoil) {
  return faulty(
      [spoil](StepRunner& runner, Network& network, const Window& window, BatchFeed& feed) {
        const StepResult result = runner.step(window, feed);
        if (window.step == 2) spoil(network);
        return result;
      });
}

Tensor named(const NamedTensors& tensors, const std::string& name) {
  for (const auto& [each, tensor] : tensors) {
    if (each == name) return tensor;
  }
  FAIL("there is no " << name);
  return {};
}

Tensor gradient_of(const Network& network, const std::string& name) {
  return named(network.named_parameters(), name).grad();
}

void change(const Tensor& tensor, const std::function<void(std::vector<float>&)>& edit) {
  std::vector<float> values = tensor.to_vector<float>();
  edit(values);
  tensor.detach().copy_(Tensor::from(values, tensor.shape(), tensor.options()));
}

void check_first(const VerifyResult& result, std::int64_t step, const std::string& phase,
                 const std::string& layer, const std::string& tensor, int replica = 0) {
  CHECK_FALSE(result.equal);
  REQUIRE(result.first.has_value());
  CHECK(result.first->step == step);
  CHECK(result.first->phase == phase);
  CHECK(result.first->layer == layer);
  CHECK(result.first->tensor == tensor);
  CHECK(result.first->replica == replica);
}

}  // namespace

TEST_CASE("replicas equal one device in every bit, whatever the batches are divided into") {
  for (const char* bn : {"micro", "deferred", "frozen", "sync", "deferred+sync"}) {
    for (int replicas : {1, 2, 3}) {
      INFO(bn << ", " << replicas << " replicas");
      Settings settings = settings_of(bn);
      settings.micro_batches = 2;
      check_equal(verify_workers(tiny_job(settings, 19), replicas, 4), 4);  // into the 2nd epoch
    }
  }
  Settings settings = settings_of("micro");
  settings.micro_batch_size = 3;
  settings.accumulate = 2;
  settings.optimizer = "lars";
  settings.clip_grad = 0.1;
  check_equal(verify_workers(tiny_job(settings, 30), 2, 3), 3);
  settings = settings_of("micro");
  settings.batch = 2;  // one replica has no images
  settings.label_smoothing = 0.1;
  check_equal(verify_workers(tiny_job(settings, 6), 3, 2), 2);
}

TEST_CASE("pipelines equal one device, and faults of a stage are named") {
  Settings settings = settings_of("micro");
  settings.micro_batch_size = 3;
  settings.stages = "2";
  settings.cut = "conv2";
  for (const char* schedule : {"fill-drain", "1f1b", "zb-h1"}) {
    settings.schedule = schedule;
    check_equal(verify_workers(tiny_job(settings, 19), 2, 4), 4);
  }
  settings.bn = "sync";
  settings.recompute = true;
  check_equal(verify_workers(tiny_job(settings, 19), 4, 3), 3);
  settings.bn = "deferred";
  settings.schedule = "interleaved";
  settings.stages = "4";
  settings.cut = "bn1,bn2,fc";
  check_equal(verify_workers(tiny_job(settings, 19), 2, 3), 3);
  const auto result =
      verify_workers(tiny_job(settings, 19), 2, 3, spoiled([](Network& network) {
                       change(gradient_of(network, "bn2.weight"), [](auto& v) { v[2] += 1; });
                       change(gradient_of(network, "bn1.weight"), [](auto& v) { v[2] += 1; });
                     }));
  check_first(result, 2, "backward", "bn2", "bn2.weight");
}

TEST_CASE("doubles, rows and weights from a file are verified too") {
  Settings settings = settings_of("sync");
  settings.precision = "fp64";
  check_equal(verify_workers(tiny_job(settings, 19), 2, 2), 2);
  settings = Settings();
  settings.model = "toy";
  settings.batch = 8;
  settings.optimizer = "adamw";
  check_equal(verify_workers(small_job(settings, 20), 2, 3), 3);
  TemporaryFolder folder;
  settings = settings_of("micro");
  settings.seed = 3;
  save_weights(*tiny_job(settings, 12).network, folder / "w.safetensors");
  settings.seed = 4;
  const double drawn = verify_workers(tiny_job(settings, 12), 2, 1).loss;
  settings.weights = folder / "w.safetensors";
  const VerifyResult loaded = verify_workers(tiny_job(settings, 12), 2, 1);
  check_equal(loaded, 1);
  CHECK(loaded.loss != drawn);
}

TEST_CASE("all outputs and tensors are compared, of each step and replica") {
  const VerifyResult result = verify_workers(tiny_job(settings_of("micro"), 16), 2, 2);
  // 6 layers, 8 gradients, 8 weights, 2 x (mean, variance, count)
  CHECK(result.compared == 2 * 2 * (6 + 8 + 8 + 6));
}

TEST_CASE("a gradient divided by the micro-batches is found at the end of the network") {
  const auto result =
      verify_workers(tiny_job(settings_of("micro"), 24), 2, 3, spoiled([](Network& network) {
                       for (const auto& [name, parameter] : network.named_parameters()) {
                         change(parameter.grad(), [](auto& values) {
                           for (float& value : values) value /= 4;
                         });
                       }
                     }));
  check_first(result, 2, "backward", "fc", "fc.weight");
  CHECK(result.gradient.value > 0);
  CHECK(result.weight.name.empty());
  CHECK(result.loss_difference.name.empty());
}

TEST_CASE("seeds that count other images change the loss and the gradients, not the outputs") {
  const auto result =
      verify_workers(tiny_job(settings_of("micro"), 24), 1, 1,
                     faulty([](StepRunner& runner, Network&, Window window, BatchFeed& feed) {
                       window.images *= 2;
                       return runner.step(window, feed);
                     }));
  check_first(result, 1, "loss", "loss", "");
  CHECK(std::abs(result.loss_difference.value - result.loss) < 1e-5 * result.loss_difference.value);
  CHECK(std::abs(result.norm_difference.value - result.grad_norm) <
        1e-5 * result.norm_difference.value);
  CHECK(result.weight.value > 0);
}

TEST_CASE("of wrong gradients the one nearest to the loss is named") {
  const auto result = verify_workers(
      tiny_job(settings_of("micro"), 24), 1, 3, spoiled([](Network& network) {
        for (const char* name : {"conv1.weight", "bn1.bias", "conv2.weight"}) {
          change(gradient_of(network, name), [](auto& values) { values[0] += 1; });
        }
        change(gradient_of(network, "bn1.bias"), [](auto& values) { values[1] += 8; });
      }));
  check_first(result, 2, "backward", "conv2", "conv2.weight");
  CHECK(result.gradient.name == "bn1.bias");
  CHECK(std::abs(result.gradient.value - 8) < 1e-5 * result.gradient.value);
}

TEST_CASE("a lost micro-batch is found in the first layer, and its number told") {
  Settings settings = settings_of("micro");
  settings.micro_batch_size = 3;
  const auto result =
      verify_workers(tiny_job(settings, 24), 1, 2,
                     faulty([](StepRunner& runner, Network&, Window window, BatchFeed& feed) {
                       HostBatch batch = feed.at(0);
                       batch.images = 6;
                       batch.shares = {6};
                       window.shares = {{6}};
                       ReadyBatches rest({batch});
                       const StepResult result = runner.step(window, rest);
                       feed.done(0);
                       return result;
                     }));
  check_first(result, 1, "forward", "conv1", "");
  CHECK(result.first->micro_batch == 2);
  CHECK(result.gradient.value > 0);
}

TEST_CASE("a layer that computes something else is named, and its replica") {
  Settings settings = settings_of("micro");
  TrainingJob job = tiny_job(settings, 24);
  int made = 0;
  job.make_network = [&made, make = job.make_network] {
    std::shared_ptr<Network> network = make();
    // Two are the one device's, the third is the second worker's.
    if (++made == 3)
      change(named(network->named_parameters(), "conv2.weight"),
             [](auto& values) { values[7] += 0.5F; });
    return network;
  };
  const auto result = verify_workers(job, 2, 1);
  REQUIRE(made == 3);
  check_first(result, 1, "forward", "conv2", "", 1);
  CHECK(result.first->micro_batch == 0);
}

TEST_CASE("labels of other images change the loss") {
  const auto result = verify_workers(
      tiny_job(settings_of("micro"), 24), 1, 1,
      faulty([](StepRunner& runner, Network&, const Window& window, BatchFeed& feed) {
        HostBatch batch = feed.at(0);
        for (std::int64_t& label : batch.labels) label = (label + 1) % 3;
        ReadyBatches mixed({batch});
        return runner.step(window, mixed);
      }));
  check_first(result, 1, "loss", "loss", "");
}

TEST_CASE("a wrong running value is named") {
  const auto result =
      verify_workers(tiny_job(settings_of("deferred"), 24), 2, 3, spoiled([](Network& network) {
                       change(named(network.named_buffers(), "bn2.running_var"),
                              [](auto& values) { values[3] += 0.25F; });
                     }));
  check_first(result, 2, "statistics", "bn2", "bn2.running_var");
  CHECK(result.statistic.name == "bn2.running_var");
  CHECK(std::abs(result.statistic.value - 0.25) < 1e-5 * result.statistic.value);
  CHECK(result.weight.name.empty());  // training does not read it
}

TEST_CASE("a forgotten update of the running values is found by its count") {
  const auto result =
      verify_workers(tiny_job(settings_of("micro"), 24), 1, 3, spoiled([](Network& network) {
                       for (const auto& [name, count] : network.named_counters()) *count -= 1;
                     }));
  check_first(result, 2, "statistics", "bn1", "bn1.num_batches_tracked");
  CHECK(result.statistic.value == 1);
}

TEST_CASE("one flipped bit of a weight is named, and what follows from it") {
  const auto result =
      verify_workers(tiny_job(settings_of("micro"), 24), 2, 3, spoiled([](Network& network) {
                       change(named(network.named_parameters(), "fc.weight"), [](auto& values) {
                         std::uint32_t bits = 0;
                         std::memcpy(&bits, &values[4], sizeof bits);
                         bits ^= 1;
                         std::memcpy(&values[4], &bits, sizeof bits);
                       });
                     }));
  check_first(result, 2, "update", "fc", "fc.weight");
  CHECK(result.weight.value > 0);
  CHECK(result.weight.value < 1e-3);
  CHECK(result.gradient.value > 0);  // of step 3
}

TEST_CASE("a gradient that no worker has is missing, not equal") {
  const auto result =
      verify_workers(tiny_job(settings_of("micro"), 24), 1, 3, spoiled([](Network& network) {
                       named(network.named_parameters(), "bn2.bias").grad() = Tensor();
                     }));
  check_first(result, 2, "backward", "bn2", "bn2.bias");
  CHECK(result.gradient.value == std::numeric_limits<double>::infinity());
}

TEST_CASE("steps of one device that are known serve other layouts, and tell them apart") {
  KnownSteps known;
  Settings settings = settings_of("micro");
  settings.devices = {"cpu:0"};
  settings.micro_batch_size = 3;
  check_equal(verify(tiny_job(settings, 16), {.steps = 2, .known = &known}), 2);
  REQUIRE(known.steps.size() == 2);
  check_equal(verify(tiny_job(settings, 16), {.steps = 2, .known = &known}), 2);
  settings.micro_batch_size = 4;
  const VerifyResult other = verify(tiny_job(settings, 16), {.steps = 2, .known = &known});
  check_first(other, 1, "forward", "conv1", "");
  CHECK(other.weight.value == std::numeric_limits<double>::infinity());
}

TEST_CASE("no steps, a wrong division and a network that nobody makes are refused") {
  TrainingJob job = tiny_job(settings_of("micro"), 12);
  expect_error(ErrorKind::usage, {"verify: 0 steps"}, [&] { verify(job, {.steps = 0}); });
  job.make_network = nullptr;
  expect_error(ErrorKind::usage, {"verify: nothing makes"}, [&] { verify(job, {.steps = 1}); });
}
