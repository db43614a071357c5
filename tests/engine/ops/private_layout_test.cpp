// The cpu backend in float32, whose convolutions lay images and weights out as they like, against
// the reference in double: chains of layers, and everything that reads, cuts or copies such
// tensors.
#include <memory>

#include "engine/autograd/backward.h"
#include "engine/nn/layers.h"
#include "engine/optim/optimizer.h"
#include "tests/support/catch.h"
#include "tests/support/formula.h"
#include "tests/support/tolerance.h"

namespace convoy::testing {
namespace {

const TensorOptions kCpu{DType::f32, "cpu:0"};
const TensorOptions kReference{DType::f64, "ref:0"};

Tensor make(const std::string& name, const Shape& shape, const TensorOptions& options) {
  std::vector<double> values = signed_values(name, shape.count());
  for (double& value : values) value = static_cast<float>(value);  // the same start for both
  return Tensor::from(values, shape, options);
}

// Convolution to `channels`, batch norm, ReLU, pooling, a residual block and a classifier.
class Chain : public Module {
 public:
  Chain(std::int64_t channels, const TensorOptions& options) : options_(options) {
    const Conv2dOptions same{.padding = 1};
    conv1 = register_module("conv1", std::make_shared<Conv2d>(3, channels, 3, same));
    norm1 = register_module("norm1", std::make_shared<BatchNorm2d>(channels, true));
    conv2 = register_module("conv2", std::make_shared<Conv2d>(channels, channels, 3, same, false));
    norm2 = register_module("norm2", std::make_shared<BatchNorm2d>(channels, true, true));
    fc = register_module("fc", std::make_shared<Linear>(channels, 4));
    initialize(11);
    to(options.device);
    to(options.dtype);
  }

  Tensor forward(const Tensor& x) override {
    const Tensor stem = max_pool2d(norm1->forward(conv1->forward(x)),
                                   {.kernel = 3, .stride = Pair(2), .padding = 1});
    const Tensor block = norm2->forward_all({conv2->forward(stem), stem});
    return fc->forward(global_avg_pool2d(block).flatten());
  }

  Tensor loss(const std::string& name, std::int64_t images) {
    x = make(name, {images, 3, 9, 7}, options_);
    x.set_requires_grad();
    std::vector<std::int64_t> labels;
    for (std::int64_t i = 0; i < images; ++i) labels.push_back(i % 4);
    return cross_entropy(forward(x), Tensor::from(labels, {images}, options_.device));
  }

  Tensor x;
  std::shared_ptr<Conv2d> conv1, conv2;
  std::shared_ptr<BatchNorm2d> norm1, norm2;
  std::shared_ptr<Linear> fc;

 private:
  TensorOptions options_;
};

void check_close(const std::string& what, const Tensor& actual, const Tensor& expected,
                 double allowed) {
  INFO(what);
  REQUIRE(actual.defined());
  CHECK(difference(digest(what, actual.to_vector<double>()),
                   digest(what, expected.to_vector<double>()), allowed) == kNoDifference);
}

void check_state(Module& actual, Module& expected, double allowed) {
  const NamedTensors wanted = expected.state_dict();
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const auto& [name, tensor] = wanted[i];
    if (name.ends_with("tracked")) continue;
    check_close(name, actual.state_dict()[i].second, tensor, allowed);
  }
}

// An image tensor as a convolution of the cpu backend leaves it.
Tensor made_by_conv(std::int64_t channels) {
  return conv2d(make("image", {3, 3, 5, 6}, kCpu), make("filter", {channels, 3, 3, 3}, kCpu), {},
                {.padding = 1});
}

}  // namespace

TEST_CASE("private layouts: values and gradients of a chain, also with odd channels") {
  for (std::int64_t channels : {1, 5, 16, 20, 64}) {
    INFO(channels << " channels");
    Chain actual(channels, kCpu), expected(channels, kReference);
    const Tensor loss = actual.loss("x", 6), wanted = expected.loss("x", 6);
    check_close("loss", loss, wanted, 1e-5);
    loss.backward();
    wanted.backward();
    check_close("dx", actual.x.grad(), expected.x.grad(), 1e-3);
    const NamedTensors parameters = actual.named_parameters();
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      if (parameters[i].first == "conv1.bias") continue;  // its gradient is zero: a norm follows
      CHECK(parameters[i].second.grad().layout() == parameters[i].second.layout());
      check_close(parameters[i].first, parameters[i].second.grad(), expected.parameters()[i].grad(),
                  1e-3);
    }
  }
}

TEST_CASE("private layouts: training with every optimizer, micro-batches of different sizes") {
  for (int kind = 0; kind < 3; ++kind) {
    INFO("optimizer " << kind);
    auto train = [&](Chain& chain) {
      const NamedTensors named = chain.named_parameters();
      std::unique_ptr<Optimizer> optimizer;
      if (kind == 0)
        optimizer = std::make_unique<Sgd>(named, SgdOptions{.lr = 0.1, .momentum = 0.9});
      if (kind == 1) optimizer = std::make_unique<Lars>(named, LarsOptions{.lr = 5});
      if (kind == 2) optimizer = std::make_unique<Adamw>(named, AdamwOptions{.epsilon = 1e-2});
      for (int step = 0; step < 3; ++step) {
        optimizer->zero_grad();
        chain.loss("a/" + std::to_string(step), 4).backward();
        chain.loss("b/" + std::to_string(step), 2).backward();
        optimizer->step();
      }
    };
    Chain actual(20, kCpu), expected(20, kReference);
    train(actual);
    train(expected);
    check_state(actual, expected, 1e-3);
  }
}

TEST_CASE("private layouts: two runs give the same bits") {
  auto bits = [] {
    Chain chain(20, kCpu);
    chain.loss("x", 4).backward();
    std::vector<std::vector<std::byte>> result;
    for (const Tensor& parameter : chain.parameters())
      result.push_back(parameter.grad().to_bytes());
    return result;
  };
  CHECK(bits() == bits());
}

TEST_CASE("private layouts: everything that reads a tensor sees row-major values") {
  for (std::int64_t channels : {5, 16, 20}) {
    const Tensor y = made_by_conv(channels);
    const std::vector<float> values = y.to_vector<float>();
    const std::int64_t image = channels * 5 * 6;
    CHECK(std::ssize(values) == 3 * image);
    const std::vector<float> second(values.begin() + image, values.begin() + 2 * image);
    CHECK(y.slice(1, 2).to_vector<float>() == second);
    CHECK(y.split(1)[1].to_vector<float>() == second);
    CHECK(y.reshape({3, -1}).to_vector<float>() == values);
    CHECK(y.flatten().to_vector<float>() == values);
    CHECK(y.clone().to_vector<float>() == values);
    CHECK(y.to(DType::f64).to_vector<float>() == values);
    CHECK(y.to(Device("ref:0")).to_vector<float>() == values);
    CHECK(y.slice(1, 2).to(Device("ref:1")).to_vector<float>() == second);
    CHECK(y.with_layout(kPlain).to_vector<float>() == values);
    CHECK(y.with_layout(kPlain).with_layout(y.layout()).to_vector<float>() == values);
    Tensor target = Tensor::empty_like(y);
    CHECK(target.layout() == y.layout());
    target.copy_(y.to(Device("ref:0")));
    CHECK(target.to_vector<float>() == values);
    target.copy_(y.to(DType::f64));
    CHECK(target.to_vector<float>() == values);
    CHECK(Tensor::zeros_like(y).to_vector<float>() == std::vector<float>(values.size(), 0));
  }
}

TEST_CASE("private layouts: a function that moves zero does not fill the padding") {
  const Tensor y = sigmoid(made_by_conv(5));
  const Tensor plain = sigmoid(made_by_conv(5).with_layout(kPlain));
  CHECK(y.to_vector<float>() == plain.to_vector<float>());
  const Tensor norms = sum(square(relu(made_by_conv(5)) + y));
  const Tensor expected = sum(square(relu(made_by_conv(5).with_layout(kPlain)) + plain));
  check_close("norm", norms, expected, 1e-6);
}

TEST_CASE("private layouts: squared norms leave padding out") {
  const Tensor y = made_by_conv(5);
  CHECK(std::abs(squared_norms({y})[0] - squared_norms({y.with_layout(kPlain)})[0]) < 1e-9);
}

TEST_CASE("private layouts: a weight is saved and loaded row-major") {
  Chain one(20, kCpu), two(20, kCpu);
  one.loss("x", 2);  // now the weights lie as the backend likes
  NamedTensors saved;
  for (const auto& [name, tensor] : one.state_dict())
    saved.emplace_back(name, tensor.to(Device("ref:0")));
  two.load_state_dict(saved);
  one.load_state_dict(saved);
  check_state(two, one, 0);
  CHECK(one.loss("x", 2).item() == two.loss("x", 2).item());
}

}  // namespace convoy::testing
