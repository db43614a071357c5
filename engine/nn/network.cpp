#include "engine/nn/network.h"

#include <cmath>

#include "engine/autograd/grad_mode.h"
#include "engine/nn/slice.h"
#include "kernels/base/error.h"

namespace convoy {
namespace {

// The first value that is NaN or infinite; 0 if there is none.
double non_finite_value(const Tensor& x) {
  for (double value : x.to_vector<double>()) {
    if (!std::isfinite(value)) return value;
  }
  return 0;
}

}  // namespace

Network::Network(std::string name, std::int64_t in, bool rows, std::int64_t out)
    : name_(std::move(name)), in_(in), rows_(rows), out_(out) {}

int Network::add(const std::string& name, std::shared_ptr<Module> module, std::vector<int> inputs) {
  const int number = static_cast<int>(layers_.size());
  if (inputs.empty()) inputs = {number - 1};
  for (int input : inputs) {
    CONVOY_DCHECK(kInput <= input && input < number, "layer {} reads layer {}", name, input);
    if (input != kInput) last_reader_[static_cast<std::size_t>(input)] = number;
  }
  last_reader_.push_back(number);
  register_module(name, module);
  layers_.push_back({name, std::move(module), std::move(inputs)});
  return number;
}

template <class Visit>
Tensor Network::run(const Tensor& x, Visit&& visit) {
  CONVOY_CHECK(!layers_.empty(), "{}: has no layers", name_);
  std::vector<Tensor> values(layers_.size());
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const Layer& layer = layers_[i];
    std::vector<Tensor> inputs;
    for (int input : layer.inputs) {
      inputs.push_back(input == kInput ? x : values[static_cast<std::size_t>(input)]);
    }
    // Freed as soon as nobody reads it any more: without backward this bounds the memory.
    for (int input : layer.inputs) {
      if (input != kInput && last_reader_[static_cast<std::size_t>(input)] == static_cast<int>(i)) {
        values[static_cast<std::size_t>(input)] = Tensor();
      }
    }
    values[i] = layer.module->forward_all(inputs);
    if (!visit(layer, values[i])) return values[i];
  }
  return values.back();
}

Tensor Network::forward(const Tensor& x) {
  return run(x, [](const Layer&, const Tensor&) { return true; });
}

std::vector<Shape> Network::input_shapes(std::size_t number, const std::vector<Shape>& outputs,
                                         std::int64_t images, std::int64_t image_size) const {
  std::vector<Shape> shapes;
  for (int input : layers_[number].inputs) {
    if (input != kInput) {
      shapes.push_back(outputs[static_cast<std::size_t>(input)]);
    } else {
      shapes.push_back(rows_ ? Shape{images, in_} : Shape{images, in_, image_size, image_size});
    }
  }
  return shapes;
}

std::vector<Shape> Network::output_shapes(std::int64_t images, std::int64_t image_size) const {
  std::vector<Shape> outputs;
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    outputs.push_back(
        layers_[i].module->output_shape(input_shapes(i, outputs, images, image_size)));
  }
  return outputs;
}

std::pair<std::string, double> Network::first_non_finite(const Tensor& x) {
  NoGradScope no_grad;
  if (const double value = non_finite_value(x); value != 0) return {"input", value};
  std::pair<std::string, double> found;
  const NoRunningUpdates no_updates(*this);
  run(x, [&](const Layer& layer, const Tensor& y) {
    if (const double value = non_finite_value(y); value != 0) found = {layer.name, value};
    return found.first.empty();
  });
  return found;
}

}  // namespace convoy
