#include "engine/train/stage_map.h"

#include "kernels/base/error.h"

namespace convoy {
namespace {

std::vector<int> places_of(const Network& network, const std::vector<int>& cuts) {
  const int layers = static_cast<int>(network.layers().size());
  std::vector<int> places = {0};
  for (int cut : cuts) {
    CONVOY_CHECK(cut > places.back() && cut < layers,
                 "cut: stage {} of {} would be empty: its layers would be {} to {} of {}",
                 places.size() - 1, cuts.size() + 1, places.back(), cut - 1, layers);
    places.push_back(cut);
  }
  places.push_back(layers);
  return places;
}

std::vector<std::string> names_of(const NamedTensors& tensors) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors) names.push_back(name);
  return names;
}

std::int64_t values_in(const NamedTensors& tensors) {
  std::int64_t sum = 0;
  for (const auto& [name, tensor] : tensors) sum += tensor.numel();
  return sum;
}

std::vector<CrossingTensor> crossing_tensors(const Network& network, int place, const Shape& sample,
                                             const std::vector<Shape>& outputs) {
  std::vector<CrossingTensor> tensors;
  for (int layer : crossing(network, place)) {
    const bool is_input = layer == Network::kInput;
    tensors.push_back({is_input ? sample : outputs.at(static_cast<std::size_t>(layer)), !is_input});
  }
  return tensors;
}

}  // namespace

StageMap map_stages(const Network& network, const std::vector<int>& cuts, const Shape& sample) {
  const std::vector<int> places = places_of(network, cuts);
  const std::vector<Shape> outputs = network.output_shapes(1, sample.rank() == 4 ? sample[2] : 1);
  StageMap map;
  for (std::size_t i = 0; i + 1 < places.size(); ++i) {
    StageEntry& stage = map.stages.emplace_back();
    stage.first = places[i];
    stage.end = places[i + 1];
    stage.inputs = crossing_tensors(network, stage.first, sample, outputs);
    stage.outputs = crossing_tensors(network, stage.end, sample, outputs);
    stage.parameters = names_of(NetworkSlice(network, stage.first, stage.end).named_parameters());
  }
  for (const auto& [name, tensor] : network.state_dict()) map.state.push_back(name);
  map.parameter_values = values_in(network.named_parameters());
  map.buffer_values = values_in(network.named_buffers());
  return map;
}

std::vector<Shape> shapes_for(const std::vector<CrossingTensor>& tensors, std::int64_t images) {
  std::vector<Shape> shapes;
  for (const CrossingTensor& tensor : tensors) shapes.push_back(tensor.shape.with(0, images));
  return shapes;
}

}  // namespace convoy
