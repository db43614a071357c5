// From settings to what runs: device, element type, optimizer, runner; and checks before step 1.
#include "engine/nn/layers.h"
#include "engine/nn/state.h"
#include "engine/train/local_runner.h"
#include "engine/train/trainer.h"
#include "kernels/base/context.h"
#include "kernels/base/error.h"

namespace convoy {
namespace {

BatchNormMode mode_of(const std::string& text) {
  if (text == "micro") return BatchNormMode::micro;
  if (text == "deferred") return BatchNormMode::deferred;
  if (text == "frozen") return BatchNormMode::frozen;
  CONVOY_FAIL(usage, "bn: mode '{}' needs several replicas, which this build lacks", text);
}

// The seam for types to come: a type that kernels lack is refused here, in one place.
DType dtype_of_precision(const Settings& settings, const Device& device) {
  if (settings.precision == "fp32") return DType::f32;
  CONVOY_CHECK(settings.precision == "fp64",
               "precision: {} is not in this build; it has fp32, and fp64 on ref:K",
               settings.precision);
  CONVOY_CHECK(device.type == DeviceType::ref, "precision: fp64 runs on ref:K, not on {}",
               to_string(device));
  return DType::f64;
}

std::unique_ptr<Optimizer> make_optimizer(const Settings& s, NamedTensors parameters) {
  if (s.optimizer == "sgd") {
    return std::make_unique<Sgd>(std::move(parameters),
                                 SgdOptions{.lr = s.lr.value_or(0.1),
                                            .momentum = s.momentum,
                                            .weight_decay = s.weight_decay.value_or(1e-4),
                                            .nesterov = s.nesterov});
  }
  if (s.optimizer == "lars") {
    return std::make_unique<Lars>(std::move(parameters),
                                  LarsOptions{.lr = s.lr.value_or(1.0),
                                              .momentum = s.momentum,
                                              .weight_decay = s.weight_decay.value_or(1e-4),
                                              .nesterov = s.nesterov});
  }
  CONVOY_CHECK(s.optimizer == "adamw", "optimizer: '{}' is none of sgd, lars, adamw", s.optimizer);
  return std::make_unique<Adamw>(
      std::move(parameters),
      AdamwOptions{.lr = s.lr.value_or(0.001), .weight_decay = s.weight_decay.value_or(0.01)});
}

LossKind loss_kind(const Settings& settings, const Network& network) {
  if (network.takes_rows() || settings.loss == "mse") return LossKind::mse;
  CONVOY_CHECK(settings.loss == "cross-entropy", "loss: '{}' is none of cross-entropy, mse",
               settings.loss);
  return LossKind::cross_entropy;
}

void prepare_device(const Settings& settings, const Device& device) {
  DeviceContext& opened = context(device);
  if (settings.threads) opened.set_threads(*settings.threads);
  if (settings.device_memory) {
    opened.memory().set_cap(static_cast<std::size_t>(*settings.device_memory));
  }
}

DataOptions data_options(const Settings& settings) {
  DataOptions options;
  options.limit = settings.limit;
  options.max_pixels = settings.max_pixels;
  options.classes = settings.classes.value_or(0);
  options.seed = settings.seed;
  options.image_size = static_cast<int>(image_size_of(settings));
  return options;
}

}  // namespace

std::int64_t image_size_of(const Settings& settings) {
  const DataKind kind = parse_data_spec(settings.data).kind;
  const bool small = kind == DataKind::fashion_mnist || kind == DataKind::cifar10;
  return settings.image_size.value_or(small ? 32 : 224);
}

DataPair open_images(const Settings& settings) {
  return open_data(parse_data_spec(settings.data), data_options(settings));
}

DataPair open_rows(const Settings& settings, std::int64_t features, std::int64_t targets) {
  DataOptions options = data_options(settings);
  options.samples = SampleKind::rows;
  options.features = features;
  options.targets = targets;
  return open_data(parse_data_spec(settings.data), options);
}

std::unique_ptr<StepRunner> make_runner(const TrainingJob& job) {
  const Settings& settings = job.settings;
  CONVOY_CHECK(settings.devices.size() == 1, "devices: {} given, this build trains on one",
               settings.devices.size());
  LocalRunnerOptions options;
  options.device = Device(settings.devices[0]);
  options.dtype = dtype_of_precision(settings, options.device);
  options.loss = loss_kind(settings, *job.network);
  options.label_smoothing = settings.label_smoothing;
  options.clip_grad = settings.clip_grad;
  options.micro_batches = {settings.micro_batch_size, settings.micro_batches};
  prepare_device(settings, options.device);
  job.network->to(options.dtype);
  job.network->to(options.device);
  set_batch_norm_mode(*job.network, mode_of(settings.bn));
  auto optimizer = make_optimizer(settings, job.network->named_parameters());
  return std::make_unique<LocalRunner>(job.network, std::move(optimizer), options);
}

}  // namespace convoy
