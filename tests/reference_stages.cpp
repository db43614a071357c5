// Training cases through two stages: the pipeline's runner on ref:0 and ref:1, in float64.
#include <nlohmann/json.hpp>

#include "engine/data/order.h"
#include "engine/nn/slice.h"
#include "engine/nn/state.h"
#include "engine/train/batch_feed.h"
#include "engine/train/pipeline_runner.h"
#include "tests/reference_trainee.h"
#include "tests/support/catch.h"

namespace convoy::testing {
namespace {

constexpr int kStages = 2;

// Batches hold float32, the cases' images are doubles: a batch's images are their numbers, and this
// layer, before the first one, gives the images of those numbers.
class ImagesByNumber : public Module {
 public:
  ImagesByNumber(std::shared_ptr<Module> layer, const Tensor& images)
      : layer_(register_module("", std::move(layer))), images_(images) {}

  Tensor forward(const Tensor& numbers) override {
    const auto first = static_cast<std::int64_t>(numbers.to_vector<double>().at(0));
    return layer_->forward(images_.slice(first, first + numbers.size(0)));
  }
  Shape output_shape(const std::vector<Shape>& inputs) const override {
    return layer_->output_shape(inputs);
  }

 private:
  std::shared_ptr<Module> layer_;
  Tensor images_;
};

// Keeps what the last layer puts out in training.
class Logits : public Module {
 public:
  Logits(std::shared_ptr<Module> layer, std::vector<double>& kept)
      : layer_(register_module("", std::move(layer))), kept_(kept) {}

  Tensor forward(const Tensor& x) override {
    Tensor y = layer_->forward(x);
    if (!is_training()) return y;
    for (double value : y.detach().to_vector<double>()) kept_.push_back(value);
    return y;
  }
  Shape output_shape(const std::vector<Shape>& inputs) const override {
    return layer_->output_shape(inputs);
  }

 private:
  std::shared_ptr<Module> layer_;
  std::vector<double>& kept_;
};

class Staged : public Trainee {
 public:
  explicit Staged(const Json& given) : plan_(training_plan(given)) {
    GroupOptions options;
    options.backend = "thread";
    options.local_workers = kStages;
    options.on_failure = [](const Error&) {};
    group_ = Group::make(World(), options);
    std::vector<WorkerParts> workers;
    for (int i = 0; i < kStages; ++i) workers.push_back(worker(given, i));
    PipelineOptions pipeline;
    pipeline.layout = {1, kStages, 1};
    pipeline.cuts = {find_cut(*workers.front().network, "layer3")};
    pipeline.sample = plan_.shape.with(0, 1);
    pipeline.division = {1, workers.front().options.micro_batches, false};
    runner_ = std::make_unique<PipelineRunner>(*group_, std::move(workers), pipeline);
  }

  double step(std::vector<double>& logits) override {
    kept_.clear();
    Window window{.step = ++steps_, .images = plan_.shape[0], .lr = plan_.sgd.lr};
    window.shares = {{plan_.shape[0]}};
    ReadyBatches feed({numbers()});
    const double loss = runner_->step(window, feed).loss;
    logits = kept_;
    return loss;
  }

  NamedTensors gradients() override { return to_tensors(runner_->gradients()); }
  NamedTensors running() override { return entries(true); }
  NamedTensors parameters() override { return entries(false); }
  std::vector<double> evaluate() override { return runner_->predict(numbers()).values; }

 private:
  WorkerParts worker(const Json& given, int number) {
    const Device device(DeviceType::ref, number);
    const TensorOptions values{DType::f64, device};
    const std::shared_ptr<Network> plain = formula_model(given, values);
    WorkerParts parts;
    parts.network = std::make_shared<Network>(plain->name(), plain->in(), false, plain->out());
    for (const Network::Layer& layer : plain->layers()) {
      std::shared_ptr<Module> module = layer.module;
      if (&layer == &plain->layers().front()) {
        module = std::make_shared<ImagesByNumber>(module,
                                                  formula_tensor("input", plan_.shape, values, 2));
      }
      if (&layer == &plain->layers().back()) module = std::make_shared<Logits>(module, kept_);
      parts.network->add(layer.name, module, layer.inputs);
    }
    parts.make_optimizer = [sgd = plan_.sgd](NamedTensors parameters) {
      return std::make_unique<Sgd>(std::move(parameters), sgd);
    };
    parts.options.device = device;
    parts.options.dtype = DType::f64;
    parts.options.label_smoothing = plan_.label_smoothing;
    parts.options.micro_batches.size = plan_.micro_batch;
    return parts;
  }

  HostBatch numbers() const {
    HostBatch batch;
    batch.images = batch.batch_images = plan_.shape[0];
    batch.shape = plan_.shape;
    const std::int64_t width = plan_.shape.with(0, 1).count();
    for (std::int64_t image = 0; image < plan_.shape[0]; ++image) {
      batch.x.insert(batch.x.end(), static_cast<std::size_t>(width), static_cast<float>(image));
    }
    batch.labels = formula_labels("label", plan_.shape[0], plan_.classes, {DType::f64, "ref:0"})
                       .to_vector<std::int64_t>();
    batch.shares = {plan_.shape[0]};
    batch.set_starts();
    return batch;
  }

  NamedTensors entries(bool running) {
    NamedTensors found;
    for (const auto& entry : to_tensors(runner_->tensors().model)) {
      const bool is_running = entry.first.find("running_") != std::string::npos;
      if (is_floating(entry.second.dtype()) && is_running == running) found.push_back(entry);
    }
    return found;
  }

  const TrainingPlan plan_;
  std::vector<double> kept_;  // written by the last stage's worker alone
  std::unique_ptr<Group> group_;
  std::unique_ptr<PipelineRunner> runner_;
  std::int64_t steps_ = 0;
};

}  // namespace

void run_staged_case(const Json& given) {
  Staged staged(given);
  check_training(given, staged, DType::f64);
}

}  // namespace convoy::testing
