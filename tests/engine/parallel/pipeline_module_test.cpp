// Pipeline: bits of a loop over micro-batches on one device, for any cuts, batches and devices; the
// names and modes of the network; what it refuses.
#include "engine/parallel/pipeline_module.h"

#include "engine/autograd/backward.h"
#include "engine/autograd/grad_mode.h"
#include "engine/ops/ops.h"
#include "engine/optim/optimizer.h"
#include "engine/parallel/distributed_data_parallel.h"
#include "kernels/base/context.h"
#include "models/models.h"
#include "tests/engine/parallel/networks.h"
#include "tests/engine/parallel/workers.h"
#include "tests/support/catch.h"
#include "tests/support/expect_error.h"
#include "tests/support/formula.h"

namespace convoy::testing {
namespace {

using Bytes = std::vector<std::byte>;

Tensor images(std::int64_t count, std::int64_t size = 16) {
  const Shape shape{count, 3, size, size};
  return Tensor::from(signed_values("images", shape.count()), shape, TensorOptions{});
}

Tensor targets(std::int64_t count, std::int64_t out, const Device& device) {
  return Tensor::from(signed_values("targets", count * out), {count, out},
                      TensorOptions{DType::f32, device});
}

// What a training leaves: the outputs of each step, then state and gradients by name.
using Record = std::vector<std::pair<std::string, Bytes>>;

void check_equal(const Record& a, const Record& b) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    INFO(b[i].first);
    CHECK(a[i].first == b[i].first);
    CHECK(a[i].second == b[i].second);
  }
}

// Two steps of SGD; `forward` maps a batch to joined outputs.
template <class Forward>
Record record(Module& module, const Tensor& x, Forward&& forward) {
  Sgd optimizer(module.named_parameters(), {.lr = 0.01, .momentum = 0.9});
  Record result;
  for (int step = 0; step < 2; ++step) {
    optimizer.zero_grad();
    const Tensor y = forward(x);
    result.emplace_back(fmt::format("output of step {}", step), y.to_bytes());
    mse_loss(y, targets(y.size(0), y.size(1), y.device())).backward();
    for (const auto& [name, tensor] : module.named_parameters()) {
      result.emplace_back("gradient of " + name, tensor.grad().to_bytes());
    }
    optimizer.step();
  }
  for (const auto& [name, tensor] : module.state_dict()) {
    result.emplace_back(name, tensor.to_bytes());
  }
  return result;
}

Record record_pipeline(Pipeline& model, const Tensor& x) {
  return record(model, x, [&](const Tensor& batch) { return model(batch); });
}

// The same on cpu:0 alone: every micro-batch through the whole network, then the outputs joined.
Record record_alone(Module& module, const Tensor& x, std::int64_t micro_batch) {
  return record(module, x, [&](const Tensor& batch) {
    std::vector<Tensor> outputs;
    for (const Tensor& part : batch.split(micro_batch)) outputs.push_back(module.forward(part));
    return cat(outputs);
  });
}

std::shared_ptr<Sequential> small_net() {
  auto net = std::make_shared<Sequential>();
  net->add("conv", std::make_shared<Conv2d>(3, 8, 3));
  net->add("norm", std::make_shared<BatchNorm2d>(8, true));
  net->add("pool", std::make_shared<GlobalAvgPool2d>());
  net->add("fc", std::make_shared<Linear>(8, 4));
  net->initialize(5);
  return net;
}

std::shared_ptr<Conv2d> conv(std::int64_t in, std::int64_t out, std::int64_t stride) {
  return std::make_shared<Conv2d>(in, out, 3, Conv2dOptions{.stride = stride, .padding = 1}, false);
}

// One residual block between a stem and a head.
std::shared_ptr<Network> residual_net() {
  auto net = std::make_shared<Network>("residual", 3, false, 5);
  net->add("conv1", conv(3, 16, 1));
  const int stem = net->add("bn1", std::make_shared<BatchNorm2d>(16, true));
  net->add("block.conv1", conv(16, 32, 2));
  net->add("block.bn1", std::make_shared<BatchNorm2d>(32, true));
  const int last = net->add("block.conv2", conv(32, 32, 1));
  net->add("block.downsample.0", conv(16, 32, 2), {stem});
  const int shortcut = net->add("block.downsample.1", std::make_shared<BatchNorm2d>(32));
  net->add("block.bn2", std::make_shared<BatchNorm2d>(32, true, true), {last, shortcut});
  net->add("pool", std::make_shared<GlobalAvgPool2d>());
  net->add("fc", std::make_shared<Linear>(32, 5));
  net->initialize(3);
  return net;
}

struct Case {
  std::vector<Cut> cuts;
  std::vector<Device> devices;
  std::int64_t images;
  std::int64_t micro_batch;
};

}  // namespace

TEST_CASE("pipeline: the bits of one device, for any cuts and micro-batches") {
  const std::vector<Device> four = {"cpu:0", "cpu:1", "cpu:2", "cpu:3"};
  const std::vector<Case> cases = {{{"block"}, {"cpu:0", "cpu:1"}, 6, 2},             // even
                                   {{"block.downsample"}, {"cpu:1", "cpu:2"}, 7, 3},  // two tensors
                                   {{"bn1", "block.bn1", "block.bn2"}, four, 5, 2},   // uneven
                                   {{"block"}, {"cpu:0", "cpu:1"}, 3, 20},  // one micro-batch
                                   {{4}, {"cpu:1", "cpu:1"}, 4, 2},         // one device twice
                                   {{}, {"cpu:0"}, 4, 2}};                  // one stage
  for (const Case& each : cases) {
    INFO(each.devices.size() << " stages, " << each.images << " images in " << each.micro_batch);
    Pipeline model(residual_net(), each.cuts, each.devices, {.micro_batch = each.micro_batch});
    const Tensor x = images(each.images);
    const Record result = record_pipeline(model, x);
    CHECK(result.front().second.size() == static_cast<std::size_t>(each.images) * 5 * 4);
    check_equal(result, record_alone(*residual_net(), x, each.micro_batch));
  }
}

TEST_CASE("pipeline: a sequence of one's own, and the gradient of the input") {
  Bytes gradients[2];
  for (int i : {0, 1}) {
    const auto net = small_net();
    Tensor x = images(5).detach();
    x.set_requires_grad();
    if (i == 0) {
      Pipeline model(net, {"norm", "fc"}, {"cpu:0", "cpu:1", "cpu:0"}, {.micro_batch = 2});
      CHECK(model.state_dict().front().first == "conv.weight");
      check_equal(record_pipeline(model, x), record_alone(*small_net(), images(5), 2));
    } else {
      record_alone(*net, x, 2);
    }
    gradients[i] = x.grad().to_bytes();
  }
  CHECK(gradients[0] == gradients[1]);
}

TEST_CASE("pipeline: a module with the network's names, modes and devices") {
  const auto network = make_model("resnet18", 5, 3);
  Pipeline model(network, {"layer3"}, {"cpu:1", "cpu:2"}, {.micro_batch = 2});
  CHECK(model.parameters().size() == network->parameters().size());
  CHECK(model.parameter_count() == network->parameter_count());
  for (const auto& [name, tensor] : model.named_parameters()) {
    const bool late = name >= "layer3" || name.starts_with("fc");
    CHECK(tensor.device() == Device(late && name != "conv1.weight" ? "cpu:2" : "cpu:1"));
  }
  CHECK(model.stages().size() == 2);
  CHECK(model.stages()[1]->layers().front().name == "layer3.0.conv1");

  model.eval();
  const NoGradScope no_grad;
  const Tensor x = images(5, 32), y = model(x);
  CHECK(y.device() == Device("cpu:2"));
  CHECK_FALSE(y.requires_grad());
  const auto alone = make_model("resnet18", 5, 3);
  alone->eval();
  CHECK(
      y.to_bytes() ==
      cat({(*alone)(x.slice(0, 2)), (*alone)(x.slice(2, 4)), (*alone)(x.slice(4, 5))}).to_bytes());
  CHECK(model(x.slice(0, 0)).shape() == Shape{0, 5});
  CHECK(model(x.slice(0, 0)).device() == Device("cpu:2"));

  const auto other = make_model("resnet18", 5, 4);
  model.load_state_dict(other->state_dict());
  other->eval();
  CHECK(model(x.slice(0, 2)).to_bytes() == (*other)(x.slice(0, 2)).to_bytes());
}

TEST_CASE("pipeline: an empty batch has gradients of zero") {
  Pipeline model(small_net(), {"pool"}, {"cpu:0", "cpu:1"});
  const Tensor y = model(images(0));
  CHECK(y.shape() == Shape{0, 4});
  backward({y}, {Tensor::empty_like(y)});
  for (const auto& [name, tensor] : model.named_parameters()) {
    INFO(name);
    REQUIRE(tensor.grad().defined());
    CHECK(tensor.grad().to_vector<double>() ==
          std::vector<double>(static_cast<std::size_t>(tensor.numel())));
  }
}

TEST_CASE("pipeline: a network without values is made stage by stage, where it is needed") {
  const Device first = "cpu:8", second = "cpu:9";
  Pipeline model(make_model_without_values("resnet18", 7), {"layer4"}, {first, second},
                 {.micro_batch = 1, .seed = 3});
  const auto whole = make_model("resnet18", 7, 3);
  const NamedTensors state = model.state_dict(), expected = whole->state_dict();
  REQUIRE(state.size() == expected.size());
  bool equal = true;
  for (std::size_t i = 0; i < state.size(); ++i) {
    equal = equal && state[i].second.to_bytes() == expected[i].second.to_bytes();
  }
  CHECK(equal);
  std::size_t bytes = 0;
  for (const auto& [name, tensor] : model.stages()[0]->named_parameters()) {
    bytes += bytes_of(tensor.shape(), tensor.dtype());
  }
  CHECK(context(first).memory().statistics().in_use < bytes + bytes / 20);
}

TEST_CASE("pipeline: replicas of it, by DistributedDataParallel") {
  const NetworkCase& network = network_cases()[1];  // the toy
  const Trained alone = train_alone(network, 5, 7);
  std::vector<Trained> results(2);
  run_workers(2, [&](int rank, HostCommunicator& communicator) {
    const auto toy = make_model("toy", 5, 7);
    toy->to(DType::f64);
    const Device first(DeviceType::ref, 2 * rank), second(DeviceType::ref, 2 * rank + 1);
    const auto pipeline = std::make_shared<Pipeline>(toy, std::vector<Cut>{"net2"},
                                                     std::vector<Device>{first, second},
                                                     PipelineOptions{.micro_batch = 2});
    DistributedDataParallel model(pipeline, communicator);
    const std::int64_t images = rank == 0 ? 3 : 2;
    results[static_cast<std::size_t>(rank)] = train(model, [&](int step) {
      const std::int64_t begin = 5 * step + 3 * rank;
      const Tensor y = model(network.images(begin, images, "cpu:0"));
      mean_loss(y, network.targets(begin, images, second)).backward();
    });
  });
  for (const Trained& result : results) {
    CHECK(distance(result.gradients, alone.gradients) < 1e-10);
    CHECK(distance(result.values, alone.values) < 1e-10);
    CHECK(result.values == results[0].values);
  }
}

TEST_CASE("pipeline: what it refuses") {
  const auto make = [](const std::vector<Cut>& cuts, const std::vector<Device>& devices,
                       std::int64_t micro_batch = 2) {
    Pipeline(make_model("toy", 5), cuts, devices, {.micro_batch = micro_batch});
  };
  expect_error(ErrorKind::usage, {"toy has no layer net3", "net1, relu, net2"}, [&] {
    make({"net3"}, {"cpu:0", "cpu:1"});
  });
  expect_error(ErrorKind::usage, {"1 cuts make 2 stages, 3 devices given"}, [&] {
    make({"net2"}, {"cpu:0", "cpu:1", "cpu:2"});
  });
  for (const Cut& cut : {Cut(0), Cut(3), Cut(-1), Cut("net1")}) {
    expect_error(ErrorKind::usage, {"of 3", "would be empty"}, [&] {
      make({cut}, {"cpu:0", "cpu:1"});
    });
  }
  expect_error(ErrorKind::usage,
               {"before layer 1 of 3: stage 1 would be empty", "expected one in 2 to 2"}, [&] {
                 make({"relu", "relu"}, {"cpu:0", "cpu:1", "cpu:2"});
               });
  expect_error(ErrorKind::usage, {"micro-batches of 0 images"}, [&] {
    make({"net2"}, {"cpu:0", "cpu:1"}, 0);
  });
  expect_error(ErrorKind::usage, {"no network given"},
               [] { Pipeline(std::shared_ptr<Network>(), {}, {"cpu:0"}); });
  expect_error(ErrorKind::usage, {"Sequential has no layers"},
               [] { Pipeline(std::make_shared<Sequential>(), {}, {"cpu:0"}); });
}

TEST_CASE("pipeline: its stages stay where they are") {
  const auto network = make_model("toy", 5);
  Pipeline model(network, {"net2"}, {"cpu:0", "cpu:1"});
  expect_error(ErrorKind::usage, {"to(cpu:2)", "stay on the devices"}, [&] { model.to("cpu:2"); });
  network->to("cpu:0");
  expect_error(ErrorKind::usage, {"net2.weight of stage 1 is on cpu:0, expected cpu:1"}, [&] {
    model(Tensor::ones({3, 10}));
  });

  Pipeline oracle(make_model("toy", 5), {"net2"}, {"ref:0", "ref:1"});
  oracle.to(DType::f64);
  CHECK(describe(oracle(Tensor::ones({3, 10}, {DType::f64, {}}))) == "f64 (3, 5) on ref:1");

  const auto twice = std::make_shared<Linear>(10, 10);
  auto tied = std::make_shared<Sequential>();
  tied->add("a", twice).add("b", twice);
  expect_error(ErrorKind::usage, {"weight of stage 0 is on cpu:1, expected cpu:0", "another stage"},
               [&] {
                 Pipeline(tied, {"b"}, {"cpu:0", "cpu:1"});
               });
}

}  // namespace convoy::testing
