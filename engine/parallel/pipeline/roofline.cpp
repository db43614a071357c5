#include "engine/parallel/pipeline/roofline.h"

#include <algorithm>
#include <set>

#include "engine/nn/layers.h"

namespace convoy {
namespace {

// One layer's work on one image (parameters aside).
struct LayerWork {
  double flops = 0;       // of F; I and W each take as many
  double parameters = 0;  // bytes
  double read = 0;        // bytes of its inputs
  double written = 0;     // of its output
  bool first = false;     // it reads the network's input: nobody wants that gradient
};

double slower_of(const DeviceRates& device, double flops, double bytes) {
  const double arithmetic = device.flops > 0 ? flops / device.flops : 0;
  const double traffic = device.bytes_per_s > 0 ? bytes / device.bytes_per_s : 0;
  return device.launch_s + std::max(arithmetic, traffic);
}

// Products read both operands and write one; all else (batch norm, pools, activations) reads its
// input twice, once for statistics or for what backward needs.
PhaseTimes times_of(const LayerWork& layer, double images, const DeviceRates& device) {
  const double moved = images * (layer.read + layer.written) + layer.parameters;
  const double flops = images * layer.flops;
  PhaseTimes times;
  if (layer.flops > 0) {
    times.forward = slower_of(device, flops, moved);
    if (!layer.first) times.backward_input = times.forward;
    times.backward_weight = times.forward;
    return times;
  }
  times.forward = slower_of(device, 0, images * (2 * layer.read + layer.written));
  times.backward_input = slower_of(device, 0, images * 2 * (layer.read + layer.written));
  return times;
}

class Roofline {
 public:
  Roofline(const Network& network, const std::vector<DeviceRates>& devices, std::int64_t images,
           std::int64_t image_size, double states, DType dtype)
      : network_(network),
        devices_(devices),
        images_(static_cast<double>(images)),
        states_(states),
        width_(static_cast<double>(size_of(dtype))),
        outputs_(network.output_shapes(1, image_size)) {
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      inputs_.push_back(network.input_shapes(i, outputs_, 1, image_size));
    }
    profile_ = {{}, node_ends(network), images};
  }

  Profile run() {
    int first = 0;
    for (int end : profile_.ends) {
      profile_.nodes.push_back(node(first, end));
      first = end;
    }
    return std::move(profile_);
  }

 private:
  double bytes(const Shape& shape) const { return width_ * static_cast<double>(shape.count()); }
  double output_bytes(int layer) const {
    return layer == Network::kInput ? 0 : bytes(outputs_[static_cast<std::size_t>(layer)]);
  }

  LayerWork work_of(std::size_t i) const {
    const Network::Layer& layer = network_.layers()[i];
    LayerWork work;
    work.flops = 2 * static_cast<double>(layer.module->multiply_adds(inputs_[i]));
    work.parameters = width_ * static_cast<double>(layer.module->parameter_count());
    for (const Shape& input : inputs_[i]) work.read += bytes(input);
    work.written = bytes(outputs_[i]);
    work.first = layer.inputs.front() == Network::kInput;
    return work;
  }

  NodeCost node(int first, int end) {
    NodeCost cost;
    cost.name = network_.layers()[static_cast<std::size_t>(first)].name;
    cost.times.resize(devices_.size());
    std::set<int> read;
    for (int i = first; i < end; ++i) {
      add(cost, static_cast<std::size_t>(i));
      for (int input : network_.layers()[static_cast<std::size_t>(i)].inputs) {
        if (input != Network::kInput && input < first) read.insert(node_of(input));
      }
    }
    cost.inputs.assign(read.begin(), read.end());
    cost.output_bytes = output_bytes(end - 1);
    cost.memory.parameter_bytes += cost.gradient_bytes * (2 + states_);
    return cost;
  }

  void add(NodeCost& cost, std::size_t i) {
    const LayerWork work = work_of(i);
    for (std::size_t device = 0; device < devices_.size(); ++device) {
      const PhaseTimes times = times_of(work, images_, devices_[device]);
      PhaseTimes& sum = cost.times[device];
      sum.forward += times.forward;
      sum.backward_input += times.backward_input;
      sum.backward_weight += times.backward_weight;
    }
    cost.gradient_bytes += work.parameters;
    for (const auto& [name, buffer] : network_.layers()[i].module->named_buffers()) {
      cost.memory.parameter_bytes += width_ * static_cast<double>(buffer.numel());
    }
    add_kept(cost.memory, i, work);
  }

  // Products keep their input until W; batch norm and activations their input and output until I.
  void add_kept(StageMemory& memory, std::size_t i, const LayerWork& work) {
    const Network::Layer& layer = network_.layers()[i];
    const double input = keep(layer.inputs.front());
    memory.kept_bytes += input;
    if (work.flops > 0) {
      memory.weight_bytes += input + work.written;
    } else {
      memory.kept_bytes += keep(static_cast<int>(i));
      if (work.parameters > 0) memory.weight_bytes += work.written;
    }
    memory.backward_bytes = std::max(memory.backward_bytes, work.read + work.written);
  }

  // Bytes of a layer's output, unless somebody keeps it already.
  double keep(int layer) { return kept_.insert(layer).second ? output_bytes(layer) : 0; }

  int node_of(int layer) const {
    const auto& ends = profile_.ends;
    return static_cast<int>(std::upper_bound(ends.begin(), ends.end(), layer) - ends.begin());
  }

  const Network& network_;
  const std::vector<DeviceRates>& devices_;
  double images_;
  double states_;
  double width_;
  std::vector<Shape> outputs_;
  std::vector<std::vector<Shape>> inputs_;
  std::set<int> kept_;
  Profile profile_;
};

}  // namespace

Profile roofline_profile(const Network& network, const std::vector<DeviceRates>& devices,
                         std::int64_t images, std::int64_t image_size, double states, DType dtype) {
  return Roofline(network, devices, images, image_size, states, dtype).run();
}

double step_seconds_per_byte(const DeviceRates& device, double states) {
  return device.bytes_per_s > 0 ? (3 + 2 * states) / device.bytes_per_s : 0;
}

}  // namespace convoy
