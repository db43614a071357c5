#include "engine/train/model_state.h"

#include <cmath>

#include "engine/nn/state.h"
#include "engine/optim/optimizer.h"
#include "kernels/base/error.h"

namespace convoy {
namespace {

std::uint64_t bytes_of(const NamedTensors& tensors) {
  std::uint64_t sum = 0;
  for (const auto& [name, tensor] : tensors) {
    sum += static_cast<std::uint64_t>(tensor.numel()) * size_of(tensor.dtype());
  }
  return sum;
}

}  // namespace

std::vector<NamedArray> finite_state(const Module& module, std::int64_t step) {
  const NamedTensors state = module.state_dict();
  std::vector<Tensor> values;
  NamedTensors floating;
  for (const auto& entry : state) {
    if (!is_floating(entry.second.dtype())) continue;
    floating.push_back(entry);
    values.push_back(entry.second);
  }
  const std::vector<double> squares = squared_norms(values);
  for (std::size_t i = 0; i < squares.size(); ++i) {
    if (!std::isfinite(squares[i])) {
      CONVOY_FAIL(numerics, "step {}: {} holds a value that is not finite: it is not saved", step,
                  floating[i].first);
    }
  }
  return to_arrays(state);
}

std::vector<NamedArray> gradient_arrays(const Module& module) {
  NamedTensors gradients;
  for (const auto& [name, parameter] : module.named_parameters()) {
    if (parameter.grad().defined()) gradients.emplace_back(name, parameter.grad().detach());
  }
  return to_arrays(gradients);
}

std::uint64_t state_bytes(const Module& module, std::size_t states) {
  return bytes_of(module.named_parameters()) * (1 + states) + bytes_of(module.named_buffers());
}

}  // namespace convoy
