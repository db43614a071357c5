// What the tests of the reducer train: a small network with private layouts, and two bare
// parameters.
#pragma once

#include <string>
#include <vector>

#include "engine/autograd/backward.h"
#include "engine/nn/layers.h"
#include "engine/ops/ops.h"
#include "engine/parallel/reducer.h"
#include "tests/support/formula.h"

namespace convoy::testing {

using Bits = std::vector<std::vector<std::byte>>;
using Values = std::vector<double>;

// The options of rank `rank`: a device each.
inline TensorOptions oracle(int rank) {
  return {DType::f64, Device(DeviceType::ref, rank)};
}
inline TensorOptions cores(int rank) {
  return {DType::f32, Device(DeviceType::cpu, rank)};
}

// Convolutions wide enough for private layouts, then a linear layer.
struct SmallNetwork {
  explicit SmallNetwork(const TensorOptions& with) : options(with) {
    network.add("conv1", std::make_shared<Conv2d>(3, 16, 3));
    network.add("relu", std::make_shared<Relu>());
    network.add("conv2", std::make_shared<Conv2d>(16, 32, 3));
    network.add("pool", std::make_shared<GlobalAvgPool2d>());
    network.add("fc", std::make_shared<Linear>(32, 3));
    network.initialize(5);
    network.to(options.device);
    network.to(options.dtype);
  }

  void backward(const std::string& batch) {
    const Shape shape{2, 3, 7, 7};
    const Tensor x = Tensor::from(signed_values(batch, shape.count()), shape, options);
    sum(square(network(x))).backward();
  }

  Bits gradients() const {
    Bits bits;
    for (const Tensor& parameter : network.parameters()) {
      bits.push_back(parameter.grad().to_bytes());
    }
    return bits;
  }

  TensorOptions options;
  Sequential network;
};

inline std::string batch_of(int rank, int step = 0) {
  return "rank" + std::to_string(rank) + "/" + std::to_string(step);
}

inline ReducerOptions with_limits(std::int64_t first, std::int64_t rest) {
  return {.buckets = {first, rest}, .allow_unused = false};
}

// Two parameters of two elements; the loss of a rank may leave one out.
struct TwoParameters {
  explicit TwoParameters(const TensorOptions& options)
      : a(Tensor::ones({2}, options)), b(Tensor::ones({2}, options)) {
    a.set_requires_grad();
    b.set_requires_grad();
  }
  NamedTensors named() const { return {{"a", a}, {"b", b}}; }
  Tensor a, b;
};

inline Values values(const Tensor& x) {
  return x.defined() ? x.to_vector<double>() : Values();
}

}  // namespace convoy::testing
