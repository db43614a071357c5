#include "engine/parallel/pipeline_module.h"

#include <algorithm>

#include "engine/ops/ops.h"
#include "kernels/base/context.h"
#include "kernels/base/error.h"

namespace convoy {
namespace {

std::shared_ptr<Network> network_of(const Sequential* layers) {
  CONVOY_CHECK(layers, "Pipeline: no module given");
  auto network = std::make_shared<Network>("Sequential", 0, false, 0);
  for (const auto& [name, layer] : layers->children()) network->add(name, layer);
  return network;
}

// The numbers of the layers with which stages begin, and the number of all layers.
std::vector<int> ends_of(const Network& network, const std::vector<Cut>& cuts) {
  const int layers = static_cast<int>(network.layers().size());
  CONVOY_CHECK(layers > 0, "Pipeline: {} has no layers", network.name());
  std::vector<int> ends{0};
  for (const Cut& cut : cuts) {
    const int place = cut.place_in(network);
    CONVOY_CHECK(ends.back() < place && place < layers,
                 "Pipeline: a cut before layer {} of {}: stage {} would be empty, expected one in "
                 "{} to {}",
                 place, layers, place < layers ? ends.size() - 1 : ends.size(), ends.back() + 1,
                 layers - 1);
    ends.push_back(place);
  }
  ends.push_back(layers);
  return ends;
}

NamedTensors values_of(const Module& module) {
  NamedTensors values = module.named_parameters();
  for (auto& entry : module.named_buffers()) values.push_back(std::move(entry));
  return values;
}

}  // namespace

int Cut::place_in(const Network& network) const {
  return name_.empty() ? place_ : find_cut(network, name_);
}

Pipeline::Pipeline(const std::shared_ptr<Sequential>& layers, const std::vector<Cut>& cuts,
                   std::vector<Device> devices, PipelineOptions options)
    : Pipeline(network_of(layers.get()), cuts, std::move(devices), options) {}

Pipeline::Pipeline(std::shared_ptr<Network> network, const std::vector<Cut>& cuts,
                   std::vector<Device> devices, PipelineOptions options)
    : devices_(std::move(devices)), options_(options) {
  CONVOY_CHECK(network, "Pipeline: no network given");
  CONVOY_CHECK(devices_.size() == cuts.size() + 1,
               "Pipeline: {} cuts make {} stages, {} devices given: expected one for each stage",
               cuts.size(), cuts.size() + 1, devices_.size());
  CONVOY_CHECK(options_.micro_batch >= 1,
               "Pipeline: micro-batches of {} images, expected at least 1", options_.micro_batch);
  network_ = register_module("", std::move(network));
  const std::vector<int> ends = ends_of(*network_, cuts);
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    context(devices_[i]);  // `usage` if there is none
    stages_.push_back(std::make_unique<NetworkSlice>(*network_, ends[i], ends[i + 1]));
  }
  place_stages();
}

void Pipeline::place_stages() {
  for (std::size_t i = 0; i < stages_.size(); ++i) {
    stages_[i]->materialize(devices_[i], DType::f32, options_.seed);
    stages_[i]->to(devices_[i]);
  }
  check_placement();
}

void Pipeline::check_placement() const {
  for (std::size_t i = 0; i < stages_.size(); ++i) {
    for (const auto& [name, tensor] : values_of(*stages_[i])) {
      if (!is_floating(tensor.dtype())) continue;  // to() moves floating ones only
      CONVOY_CHECK(tensor.device() == devices_[i],
                   "Pipeline: {} of stage {} is on {}, expected {}: it was moved, or is in another "
                   "stage too",
                   name, i, to_string(tensor.device()), to_string(devices_[i]));
    }
  }
}

void Pipeline::to(const Device& device) {
  CONVOY_FAIL(usage, "Pipeline: to({}): its stages stay on the devices that it was made for",
              to_string(device));
}

void Pipeline::run_stage(std::size_t stage, std::vector<Tensor>& values) const {
  for (Tensor& value : values) value = value.to(devices_[stage]);
  values = stages_[stage]->run(std::exchange(values, {}));
}

Tensor Pipeline::forward(const Tensor& x) {
  CONVOY_CHECK(x.defined() && x.shape().rank() >= 1, "Pipeline: the input is {}, expected a batch",
               convoy::describe(x));
  check_placement();
  const std::vector<Tensor> inputs = x.split(options_.micro_batch);
  std::vector<std::vector<Tensor>> values(inputs.size());
  // In a wave all stages have work, of micro-batches that follow each other; what the stage before
  // made in this wave is for the next one.
  for (std::size_t wave = 0; wave + 1 < inputs.size() + stages_.size(); ++wave) {
    for (std::size_t stage = std::min(wave + 1, stages_.size()); stage-- > 0;) {
      const std::size_t micro_batch = wave - stage;
      if (micro_batch >= inputs.size()) break;  // this wave's later ones have none either
      if (stage == 0) values[micro_batch] = {inputs[micro_batch]};
      run_stage(stage, values[micro_batch]);
    }
  }
  std::vector<Tensor> outputs;
  for (const std::vector<Tensor>& each : values) outputs.push_back(each.front());
  return outputs.size() == 1 ? outputs.front() : cat(outputs);
}

}  // namespace convoy
