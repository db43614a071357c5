// Batches of 0 images: every op takes them, and parameters get gradients of zeros.
#include <cmath>

#include "engine/autograd/backward.h"
#include "engine/nn/layers.h"
#include "engine/ops/ops.h"
#include "models/models.h"
#include "tests/support/catch.h"

namespace convoy::testing {
namespace {

using Values = std::vector<double>;

Tensor images(const Device& device, std::int64_t channels, std::int64_t size) {
  return Tensor::empty({0, channels, size, size}, {DType::f32, device});
}

Tensor labels(const Device& device) {
  return Tensor::from(std::vector<std::int64_t>{}, {0}, device);
}

Tensor leaf(const Shape& shape, const Device& device) {
  Tensor tensor = Tensor::full(shape, 0.5, {DType::f32, device});
  tensor.set_requires_grad();
  return tensor;
}

void check_zero(const Tensor& gradient, const Tensor& of) {
  REQUIRE(gradient.defined());
  CHECK(gradient.shape() == of.shape());
  CHECK(gradient.layout() == of.layout());
  CHECK(gradient.to_vector<double>() == Values(static_cast<std::size_t>(of.numel()), 0.0));
}

// What y depends on gets zeros, whatever comes from behind.
void check_backward(const Tensor& y, const std::vector<Tensor>& leaves) {
  backward({y}, {Tensor::ones(y.shape(), y.options())});
  for (const Tensor& each : leaves) check_zero(each.grad(), each);
}

const std::vector<Device> kDevices = {"ref:0", "cpu:0"};

}  // namespace

TEST_CASE("no images: tensors") {
  for (const Device& device : kDevices) {
    INFO(to_string(device));
    Tensor x = leaf({0, 6}, device);
    CHECK(x.numel() == 0);
    CHECK(x.to_vector<float>().empty());
    CHECK(Tensor::from_host(nullptr, {0, 3}, {DType::f32, device}).shape() == Shape{0, 3});
    CHECK(x.clone().shape() == x.shape());
    CHECK(x.slice(0, 0).shape() == x.shape());
    CHECK(x.reshape({0, 2, 3}).flatten().shape() == x.shape());
    CHECK(x.reshape({-1, 2}).shape() == Shape{0, 2});
    REQUIRE(x.split(4).size() == 1);
    CHECK(x.split(4)[0].shape() == x.shape());
    CHECK(leaf({4, 6}, device).slice(2, 2).shape() == x.shape());
    CHECK(x.to(DType::f64).to(DType::f32).shape() == x.shape());
    x.detach().copy_(Tensor::zeros({0, 6}));
    x.detach().fill_(3);
    check_backward(x.to(Device("ref:1")).reshape({0, 3, 2}).slice(0, 0), {x});
  }
}

TEST_CASE("no images: a slice without images takes part in its tensor's gradient") {
  Tensor x = leaf({2, 1}, "cpu:0");
  check_backward(x.slice(1, 1), {x});
}

TEST_CASE("no images: ops with parameters") {
  for (const Device& device : kDevices) {
    INFO(to_string(device));
    const Tensor weight = leaf({4, 2, 3, 3}, device), bias = leaf({4}, device);
    Tensor x = leaf({0, 2, 6, 6}, device);
    const Tensor y = conv2d(x, weight, bias, {.stride = 2, .padding = 1});
    CHECK(y.shape() == Shape{0, 4, 3, 3});
    check_backward(y, {x, weight, bias});

    const Tensor matrix = leaf({5, 3}, device), offset = leaf({5}, device);
    Tensor rows = leaf({0, 3}, device);
    const Tensor product = linear(rows, matrix, offset);
    CHECK(product.shape() == Shape{0, 5});
    check_backward(product, {rows, matrix, offset});
  }
}

TEST_CASE("no images: a weight in a layout of its own keeps it") {
  const Tensor weight = leaf({16, 16, 3, 3}, "cpu:0");
  conv2d(Tensor::ones({2, 16, 8, 8}), weight);  // moves it
  check_backward(conv2d(images("cpu:0", 16, 8), weight), {weight});
}

TEST_CASE("no images: batch norm changes no running values") {
  for (const Device& device : kDevices) {
    for (BatchNormMode mode :
         {BatchNormMode::micro, BatchNormMode::deferred, BatchNormMode::frozen}) {
      INFO(to_string(device));
      BatchNorm2d norm(3, true, true);
      norm.to(device);
      norm.set_mode(mode);
      Tensor x = leaf({0, 3, 4, 4}, device), residual = leaf({0, 3, 4, 4}, device);
      const Tensor y = norm.forward_all({x, residual});
      CHECK(y.shape() == x.shape());
      check_backward(y, {x, residual, norm.weight, norm.bias});
      norm.commit();
      CHECK(norm.running_mean.to_vector<double>() == Values{0, 0, 0});
      CHECK(norm.running_var.to_vector<double>() == Values{1, 1, 1});
      CHECK(norm.num_batches_tracked == 0);
    }
  }
}

TEST_CASE("no images: elementwise ops, pools and sums") {
  for (const Device& device : kDevices) {
    INFO(to_string(device));
    Tensor a = leaf({0, 2, 4, 4}, device), b = leaf({0, 2, 4, 4}, device);
    check_backward(relu(a) + b * a, {a, b});
    a.grad() = Tensor();
    const Pool2dOptions pool{.kernel = 3, .stride = 2, .padding = 1};
    const Tensor pooled = max_pool2d(a, pool) + avg_pool2d(a, pool);
    CHECK(pooled.shape() == Shape{0, 2, 2, 2});
    check_backward(global_avg_pool2d(pooled).flatten(), {a});
    CHECK(sum(b).item() == 0);
    check_backward(sum(b), {b});
  }
}

TEST_CASE("no images: losses with a given scale are 0") {
  for (const Device& device : kDevices) {
    INFO(to_string(device));
    Tensor logits = leaf({0, 3}, device);
    const Tensor loss = cross_entropy(logits, labels(device), {.scale = 0.25});
    CHECK(loss.item() == 0);
    check_backward(loss, {logits});
    logits.grad() = Tensor();
    const Tensor error = mse_loss(logits, Tensor::zeros({0, 3}, logits.options()), 0.25);
    CHECK(error.item() == 0);
    check_backward(error, {logits});
  }
}

TEST_CASE("no images: a whole network has gradients of zeros") {
  for (const Device& device : kDevices) {
    INFO(to_string(device));
    const auto network = make_model("resnet18", 10);
    network->to(device);
    const Tensor logits = network->forward(images(device, 3, 32));
    CHECK(logits.shape() == Shape{0, 10});
    cross_entropy(logits, labels(device), {.scale = 0.125}).backward();
    for (const auto& [name, parameter] : network->named_parameters()) {
      INFO(name);
      check_zero(parameter.grad(), parameter);
    }
    for (const auto& [name, buffer] : network->named_buffers()) {
      CHECK(buffer.to_vector<double>().at(0) == (name.ends_with("var") ? 1 : 0));
    }
  }
}

}  // namespace convoy::testing
