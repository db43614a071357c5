#include "engine/nn/slice.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "engine/nn/layers.h"
#include "kernels/base/error.h"

namespace convoy {
namespace {

bool lies_below(const std::string& layer, const std::string& name) {
  return layer == name || layer.compare(0, name.size() + 1, name + ".") == 0;
}

// "layer1, layer2, fc": the first part of each layer's name, in order.
std::string top_names(const Network& network) {
  std::vector<std::string> names;
  for (const Network::Layer& layer : network.layers()) {
    const std::string top = layer.name.substr(0, layer.name.find('.'));
    if (names.empty() || names.back() != top) names.push_back(top);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

std::vector<int> crossing(const Network& network, int place) {
  const int layers = static_cast<int>(network.layers().size());
  CONVOY_DCHECK(0 <= place && place <= layers, "a cut at {} of {} layers", place, layers);
  if (place == layers) return {layers - 1};
  std::set<int> crossed;
  for (int i = place; i < layers; ++i) {
    for (int input : network.layers()[static_cast<std::size_t>(i)].inputs) {
      if (input < place) crossed.insert(input);
    }
  }
  return {crossed.begin(), crossed.end()};
}

int find_cut(const Network& network, const std::string& name) {
  const auto& layers = network.layers();
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (lies_below(layers[i].name, name)) return static_cast<int>(i);
  }
  CONVOY_FAIL(usage, "{} has no layer {}, expected one of {} or a layer within", network.name(),
              name, top_names(network));
}

std::string cut_name(const Network& network, int place) {
  const std::string& whole = network.layers().at(static_cast<std::size_t>(place)).name;
  for (std::size_t dot = whole.find('.'); dot != std::string::npos;
       dot = whole.find('.', dot + 1)) {
    if (find_cut(network, whole.substr(0, dot)) == place) return whole.substr(0, dot);
  }
  return whole;
}

NetworkSlice::NetworkSlice(const Network& network, int first, int end) : first_(first) {
  CONVOY_DCHECK(0 <= first && first < end && end <= static_cast<int>(network.layers().size()),
                "layers {} to {} of {}", first, end, network.layers().size());
  inputs_ = crossing(network, first);
  outputs_ = crossing(network, end);
  for (int i = first; i < end; ++i) {
    layers_.push_back(network.layers()[static_cast<std::size_t>(i)]);
    register_module(layers_.back().name, layers_.back().module);
  }
  last_reader_.assign(inputs_.size() + layers_.size(), 0);
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    for (int input : layers_[i].inputs) last_reader_[value_of(input)] = first + static_cast<int>(i);
  }
  for (int output : outputs_) last_reader_[value_of(output)] = end;
}

// Where the output of a layer is kept: the slice's inputs first, then its own layers.
std::size_t NetworkSlice::value_of(int layer) const {
  if (layer >= first_) return inputs_.size() + static_cast<std::size_t>(layer - first_);
  const auto found = std::find(inputs_.begin(), inputs_.end(), layer);
  return static_cast<std::size_t>(found - inputs_.begin());
}

std::vector<Tensor> NetworkSlice::run(const std::vector<Tensor>& inputs, const Visit& visit) {
  CONVOY_CHECK(inputs.size() == inputs_.size(), "{}: {} tensors given, it takes {}", describe(),
               inputs.size(), inputs_.size());
  std::vector<Tensor> values = inputs;
  values.resize(inputs_.size() + layers_.size());
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const int number = first_ + static_cast<int>(i);
    std::vector<Tensor> read;
    for (int input : layers_[i].inputs) read.push_back(values[value_of(input)]);
    // Freed as soon as nobody reads it any more, before the layer makes its own.
    for (int input : layers_[i].inputs) {
      if (last_reader_[value_of(input)] == number) values[value_of(input)] = Tensor();
    }
    Tensor& output = values[value_of(number)];
    output = layers_[i].module->forward_all(read);
    if (visit && !visit(number, output)) return {};
  }
  std::vector<Tensor> outputs;
  for (int output : outputs_) outputs.push_back(values[value_of(output)]);
  return outputs;
}

Tensor NetworkSlice::forward(const Tensor& x) {
  CONVOY_CHECK(inputs_.size() == 1 && outputs_.size() == 1,
               "{}: takes {} tensors and gives {}, expected one of each", describe(),
               inputs_.size(), outputs_.size());
  return run({x}).front();
}

std::vector<Shape> NetworkSlice::input_shapes(const Shape& network_input,
                                              const std::vector<Shape>& all_outputs) const {
  std::vector<Shape> shapes;
  for (int input : inputs_) {
    shapes.push_back(input == Network::kInput ? network_input
                                              : all_outputs.at(static_cast<std::size_t>(input)));
  }
  return shapes;
}

std::string NetworkSlice::describe() const {
  return fmt::format("{} to {}", layers_.front().name, layers_.back().name);
}

NoRunningUpdates::NoRunningUpdates(Module& module) {
  module.for_each([this](const std::string&, Module& each) {
    auto* norm = dynamic_cast<BatchNorm2d*>(&each);
    if (!norm || !norm->updates_running()) return;
    norm->set_update_running(false);
    switched_off_.push_back(norm);
  });
}

NoRunningUpdates::~NoRunningUpdates() {
  for (BatchNorm2d* norm : switched_off_) norm->set_update_running(true);
}

}  // namespace convoy
