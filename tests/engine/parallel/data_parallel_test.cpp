// DataParallel: output and gradients of one device, for any devices and batches; the module is what
// it was, also after an error.
#include "engine/parallel/data_parallel.h"

#include <cmath>
#include <cstdlib>

#include "comm/thread_communicator.h"
#include "engine/autograd/grad_mode.h"
#include "engine/nn/layers.h"
#include "engine/ops/ops.h"
#include "kernels/base/context.h"
#include "kernels/base/host_context.h"
#include "tests/engine/parallel/networks.h"
#include "tests/support/catch.h"
#include "tests/support/expect_error.h"
#include "tests/support/formula.h"

namespace convoy::testing {
namespace {

constexpr double kTolerance = 1e-10;

std::vector<Device> oracles(int count) {
  std::vector<Device> devices;
  for (int i = 0; i < count; ++i) devices.emplace_back(DeviceType::ref, i);
  return devices;
}

TensorOptions doubles(int device) {
  return {DType::f64, Device(DeviceType::ref, device)};
}

// A user's own module: y = x w^T + shift * calls, a frozen scale, a counter; may fail on a device.
class Affine : public Module {
 public:
  Affine()
      : weight(
            register_parameter("weight", Tensor::from(signed_values("w", 6), {3, 2}, doubles(0)))),
        scale(register_parameter("scale", Tensor::full({3, 3}, 0.5, doubles(0)))),
        twin(register_parameter("twin", weight)),
        running(register_buffer("running", Tensor::full({3}, 4, doubles(0)))) {
    scale.set_requires_grad(false);
    register_counter("calls", &calls);
  }
  Tensor forward(const Tensor& x) override { return forward_all({x, x}); }
  Tensor forward_all(const std::vector<Tensor>& inputs) override {
    ++calls;
    devices.push_back(weight.device());
    running.fill_(static_cast<double>(inputs[0].size(0)));
    if (weight.device() == failing) CONVOY_FAIL(data, "of a layer");
    return linear(linear(inputs[0], weight) + linear(inputs[1], twin), scale);
  }

  Tensor weight, scale, twin, running;
  std::int64_t calls = 0;
  std::vector<Device> devices;  // of the forwards so far
  std::optional<Device> failing;
};

Tensor rows(std::int64_t count, const Device& device = "ref:0") {
  return Tensor::from(signed_values("rows", count * 2), {count, 2}, {DType::f64, device});
}

}  // namespace

TEST_CASE("data parallel: equal to one device, for any devices and images") {
  for (const NetworkCase& network : network_cases()) {
    for (int devices : {1, 2, 3}) {
      for (std::int64_t images : {6, 5, 2, 1}) {
        INFO(network.name << ": " << images << " images on " << devices << " devices");
        DataParallel model(network.make("ref:0", 7), oracles(devices));
        const Trained alone = train_alone(network, images, 7);
        const Trained result = train(model, [&](int step) {
          const Tensor y = model(network.images(step * images, images, "cpu:0"));
          CHECK(y.device() == Device("ref:0"));
          mean_loss(y, network.targets(step * images, images, "ref:0")).backward();
        });
        CHECK(distance(result.gradients, alone.gradients) < kTolerance);
        CHECK(distance(result.values, alone.values) < kTolerance);
      }
    }
  }
}

TEST_CASE("data parallel: outputs, and the gradient of the input") {
  const NetworkCase& network = network_cases()[2];
  const auto module = network.make("ref:0", 3);
  DataParallel model(module, oracles(3));
  Values outputs[2], gradients[2];
  for (int i : {0, 1}) {
    Tensor x = network.images(0, 5, "ref:0").clone();
    x.set_requires_grad();
    const Tensor y = i == 0 ? (*module)(x) : model(x);
    sum(square(y)).backward();
    outputs[i] = y.to_vector<double>();
    gradients[i] = x.grad().to_vector<double>();
  }
  CHECK(distance(outputs[0], outputs[1]) < 1e-14);
  CHECK(distance(gradients[0], gradients[1]) < 1e-14);
  const NoGradScope no_grad;
  const Tensor y = model(network.images(0, 5, "ref:0"));
  CHECK(!y.requires_grad());
  CHECK(y.to_vector<double>() == outputs[1]);
  CHECK(model(network.images(0, 0, "ref:0")).shape() == Shape{0, 2});
}

TEST_CASE("data parallel: private layouts of cpu") {
  auto gradients = [](const std::vector<Device>& devices) {
    auto network = std::make_shared<Sequential>();
    network->add("conv1", std::make_shared<Conv2d>(3, 16, 3));
    network->add("conv2", std::make_shared<Conv2d>(16, 32, 3));
    network->add("pool", std::make_shared<GlobalAvgPool2d>());
    network->initialize(3);
    DataParallel model(network, devices);
    const Shape shape{5, 3, 9, 9};
    Values result;
    for (int step = 0; step < 2; ++step) {
      const NoGradScope no_grad;  // weights move into their layouts, on every device
      model(Tensor::from(signed_values("x", shape.count()), shape, TensorOptions{}));
    }
    sum(square(model(Tensor::from(signed_values("x", shape.count()), shape, TensorOptions{}))))
        .backward();
    return gradients_of(model);
  };
  const Values one = gradients({"cpu:0"}), three = gradients({"cpu:0", "cpu:1", "cpu:2"});
  double norm = 0;
  for (double value : one) norm = std::max(norm, std::abs(value));
  CHECK(norm > 0);
  CHECK(distance(one, three) < 1e-5 * norm);
}

TEST_CASE("data parallel: a module of the user's own, and what forward leaves of it") {
  const auto module = std::make_shared<Affine>();
  const Values before = module->weight.to_vector<double>();
  DataParallel model(module, oracles(3));
  const Tensor y = model.forward_all({rows(5), rows(5, "cpu:0")});
  CHECK(y.shape() == Shape{5, 3});
  CHECK(module->devices == std::vector<Device>{"ref:1", "ref:2", "ref:0"});
  CHECK(module->calls == 1);
  CHECK(module->running.to_vector<double>() == Values(3, 2));  // the first device's images
  sum(y).backward();
  CHECK(!module->scale.grad().defined());
  CHECK(module->weight.grad().device() == Device("ref:0"));
  CHECK(module->weight.is_leaf());
  CHECK(module->weight.device() == Device("ref:0"));
  CHECK(module->weight.to_vector<double>() == before);

  const Values together = module->weight.grad().to_vector<double>();
  module->zero_grad();
  sum((*module)(rows(5))).backward();
  CHECK(distance(together, module->weight.grad().to_vector<double>()) < 1e-14);
}

TEST_CASE("data parallel: a forward that fails leaves the module as it was") {
  const auto module = std::make_shared<Affine>();
  const auto norm = std::make_shared<BatchNorm2d>(2);
  norm->to(DType::f64);
  norm->to(Device("ref:0"));
  const auto network = std::make_shared<Sequential>();
  network->add("norm", norm).add("affine", module);
  DataParallel model(network, oracles(3));
  const Values before = values_of(model);
  module->failing = Device("ref:2");
  expect_error(ErrorKind::data, {"of a layer"}, [&] { model(rows(6)); });
  CHECK(module->devices == std::vector<Device>{"ref:1", "ref:2"});
  CHECK(values_of(model) == before);
  for (const auto& [name, tensor] : model.state_dict()) {
    if (is_floating(tensor.dtype())) CHECK(tensor.device() == Device("ref:0"));
    CHECK(tensor.is_leaf());
  }
  CHECK(norm->updates_running());
  module->failing.reset();
  sum(model(rows(6))).backward();
  CHECK(module->weight.grad().defined());
  CHECK(module->calls == 1);
}

TEST_CASE("data parallel: running statistics are those of the first device's images") {
  for (BatchNormMode mode : {BatchNormMode::micro, BatchNormMode::deferred}) {
    const auto norm = std::make_shared<BatchNorm2d>(1);
    norm->to(DType::f64);
    norm->to(Device("ref:0"));
    norm->set_mode(mode);
    DataParallel model(norm, oracles(2));
    const Tensor y = model(Tensor::from(Values{1, 3, 100, 200}, {4, 1}, doubles(0)));
    norm->commit();
    CHECK(std::abs(norm->running_mean.item() - 0.2) < 1e-15);
    CHECK(std::abs(norm->running_var.item() - (0.9 + 0.1 * 2)) < 1e-15);
    CHECK(norm->num_batches_tracked == 1);
    // Each device's images by themselves.
    const Values values = y.to_vector<double>();
    CHECK(std::abs(values.at(0) + 1 / std::sqrt(1 + 1e-5)) < 1e-12);
    CHECK(std::abs(values.at(3) - 50 / std::sqrt(2500 + 1e-5)) < 1e-12);
  }
}

TEST_CASE("data parallel: in one line, over all devices of the kind") {
  CHECK(device_count(DeviceType::cpu) == allowed_cores());
  CHECK(device_count(DeviceType::ref) == allowed_cores());
  CHECK(device_count(DeviceType::cuda) == 0);
  const int threads = context("cpu:0").threads();
  const auto linear = std::make_shared<Linear>(2, 3);
  DataParallel model(linear);
  CHECK(model.devices().size() == static_cast<std::size_t>(device_count(DeviceType::cpu)));
  CHECK(model.devices().front() == Device("cpu:0"));
  const int expected = std::getenv("OMP_NUM_THREADS") ? threads : 1;
  for (const Device& device : model.devices()) CHECK(context(device).threads() == expected);
  CHECK(model(Tensor::ones({7, 2})).shape() == Shape{7, 3});
  CHECK(model.state_dict().front().first == "weight");
  CHECK(model.describe() == "DataParallel(" + linear->describe() + ")");
  CHECK(model.output_shape({{7, 2}}) == Shape{7, 3});
  CHECK(model.multiply_adds({{7, 2}}) == linear->multiply_adds({{7, 2}}));
  for (const Device& device : model.devices()) context(device).set_threads(threads);
  CHECK(DataParallel(std::make_shared<Affine>()).devices().front() == Device("ref:0"));
}

TEST_CASE("data parallel: what is refused") {
  auto refused = [](const std::vector<std::string_view>& parts, const std::function<void()>& work) {
    expect_error(ErrorKind::usage, parts, work);
  };
  const auto module = std::make_shared<Affine>();
  refused({"no module"}, [] { DataParallel(nullptr); });
  refused({"ref:0 is named twice"}, [&] { DataParallel(module, {"ref:0", "ref:1", "ref:0"}); });
  refused({"cuda:0"}, [&] { DataParallel(module, {"ref:0", "cuda:0"}); });
  refused({"weight is on ref:0", "ref:1", ".to()"}, [&] { DataParallel(module, {"ref:1"}); });
  DataParallel model(module, oracles(2));
  refused({"no input"}, [&] { model.forward_all({}); });
  refused({"(2, 2)", "(3, 2)"}, [&] { model.forward_all({rows(3), rows(2)}); });
  refused({"()"}, [&] { model(Tensor::ones({}, doubles(0))); });
  const auto group = make_thread_communicators(1);
  const auto norm = std::make_shared<BatchNorm2d>(2);
  norm->set_group(group[0].get());
  refused({"group of workers", "DistributedDataParallel"}, [&] { DataParallel(norm, {"cpu:0"}); });
}

}  // namespace convoy::testing
