#include "engine/parallel/pipeline/profile.h"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "engine/nn/layers.h"
#include "engine/ops/ops.h"
#include "engine/parallel/pipeline/profile_node.h"
#include "engine/parallel/pipeline/profile_scope.h"
#include "kernels/base/context.h"
#include "kernels/base/error.h"

namespace convoy {
namespace {

LossOf loss_of(const ProfileOptions& options, std::int64_t outputs) {
  if (options.mse) {
    const Tensor target =
        Tensor::zeros({options.images, outputs}, {parameter_type(options.dtype), options.device});
    return [target](const Tensor& y) { return mse_loss(y, target); };
  }
  std::vector<std::int64_t> labels;
  for (std::int64_t i = 0; i < options.images; ++i) labels.push_back(i % outputs);
  const Tensor wanted = Tensor::from(labels, {options.images}, options.device);
  return [wanted](const Tensor& y) { return cross_entropy(y, wanted); };
}

Tensor made_up_input(const Network& network, const ProfileOptions& options) {
  const Shape shape = network.takes_rows() ? Shape{options.images, network.in()}
                                           : Shape{options.images, network.in(), options.image_size,
                                                   options.image_size};
  const std::vector<double> values = RandomStream(0, "profile/x").normal(shape.count());
  return Tensor::from(values, shape, {parameter_type(options.dtype), options.device})
      .to(options.dtype);
}

// Median, phase by phase, of all passes but the first ones.
PhaseTimes median_of(const std::vector<PhaseTimes>& passes, std::size_t warm_up) {
  auto median = [&](double PhaseTimes::*phase) {
    std::vector<double> values;
    for (std::size_t i = warm_up; i < passes.size(); ++i) values.push_back(passes[i].*phase);
    std::sort(values.begin(), values.end());
    const std::size_t half = values.size() / 2;
    return values.size() % 2 ? values[half] : (values[half - 1] + values[half]) / 2;
  };
  return {median(&PhaseTimes::forward), median(&PhaseTimes::backward_input),
          median(&PhaseTimes::backward_weight)};
}

// Warm-ups and repeats of a pass that takes `seconds`.
std::pair<std::int64_t, std::int64_t> passes_within(const ProfileOptions& options, double seconds) {
  std::int64_t warm_up = std::max<std::int64_t>(1, options.warm_up);
  std::int64_t repeats = std::max<std::int64_t>(1, options.repeats);
  const auto over = [&] {
    return seconds * static_cast<double>(warm_up + repeats) > options.budget_s;
  };
  while (over() && warm_up > 1) --warm_up;
  while (over() && repeats > 3) --repeats;
  return {warm_up, repeats};
}

struct PartBytes {
  double parameters = 0;
  double buffers = 0;
};

PartBytes bytes_of_part(const Module& part, const ProfileOptions& options) {
  PartBytes bytes;
  const auto width = static_cast<double>(size_of(parameter_type(options.dtype)));
  bytes.parameters = width * static_cast<double>(part.parameter_count());
  for (const auto& [name, buffer] : part.named_buffers()) {
    bytes.buffers += width * static_cast<double>(buffer.numel());
  }
  return bytes;
}

class Profiler {
 public:
  Profiler(Network& network, const ProfileOptions& options, ProfileScope& scope)
      : network_(network), options_(options), scope_(scope) {
    int first = 0;
    for (int end : node_ends(network)) {
      nodes_.push_back(
          std::make_unique<MeasuredNode>(network, first, end, scope.device(), scope.stream()));
      first = end;
    }
  }

  void run() {
    input_ = made_up_input(network_, options_);
    loss_ = loss_of(options_, network_.out());
    scope_.enter(network_);
    std::size_t passes = 1;
    const double first = seconds_of(scope_.stream(), [&] { pass(); });
    const auto [warm_up, repeats] = passes_within(options_, first);
    for (; passes < static_cast<std::size_t>(warm_up + repeats); ++passes) pass();
    warm_up_ = static_cast<std::size_t>(warm_up);
  }

  // Each node alone, one after the other: what it needs is there for as long as it is measured.
  void run_apart() {
    input_ = made_up_input(network_, options_);
    loss_ = loss_of(options_, network_.out());
    ProfileValues values;
    values.leaves[Network::kInput] = input_;
    for (std::size_t i = 0; i < nodes_.size(); ++i) measure_alone(i, values);
  }

  std::vector<NodeCost> costs() const {
    std::vector<NodeCost> costs;
    for (const auto& node : nodes_) costs.push_back(cost_of(*node));
    return costs;
  }

 private:
  NodeCost cost_of(MeasuredNode& node) const {
    const auto images = static_cast<double>(options_.images);
    NodeCost cost;
    cost.name = node.slice().layers().front().name;
    cost.times = {median_of(node.passes(), warm_up_)};
    cost.memory = node.memory();
    for (double StageMemory::*bytes :
         {&StageMemory::kept_bytes, &StageMemory::weight_bytes, &StageMemory::backward_bytes}) {
      cost.memory.*bytes /= images;
    }
    const PartBytes bytes = bytes_of_part(node.slice(), options_);
    cost.memory.parameter_bytes = bytes.parameters * (2 + options_.states) + bytes.buffers;
    cost.gradient_bytes = bytes.parameters;
    cost.output_bytes = node.output_bytes() / images;
    for (int input : node.reads()) {
      if (input != Network::kInput) cost.inputs.push_back(node_of(input));
    }
    return cost;
  }

  // The node that makes the output of a layer.
  int node_of(int layer) const {
    int node = 0;
    while (nodes_[static_cast<std::size_t>(node)]->slice().end() <= layer) ++node;
    return node;
  }

  LossOf loss_at(std::size_t node) const { return node + 1 == nodes_.size() ? loss_ : nullptr; }

  void pass() {
    ProfileValues values;
    values.leaves[Network::kInput] = input_;
    for (std::size_t i = 0; i < nodes_.size(); ++i) nodes_[i]->forward(values, loss_at(i));
    for (std::size_t i = nodes_.size(); i-- > 0;) nodes_[i]->backward(values);
  }

  void measure_alone(std::size_t i, ProfileValues& values) {
    MeasuredNode& node = *nodes_[i];
    scope_.enter(node.slice());
    const std::int64_t passes = std::max<std::int64_t>(1, options_.warm_up) + options_.repeats;
    Tensor output;
    for (std::int64_t k = 0; k < passes; ++k) {
      values.kept.clear();
      node.forward(values, loss_at(i));
      const auto made = values.leaves.find(node.slice().end() - 1);
      if (made != values.leaves.end()) {
        output = made->second.detach();
        output.set_requires_grad(made->second.requires_grad());
        made->second.grad() =
            Tensor::ones(output.shape(), output.options()).with_layout(output.layout());
      }
      node.backward(values);
      for (auto& [layer, leaf] : values.leaves) leaf.grad() = Tensor();
    }
    scope_.leave(node.slice());
    if (output.defined()) values.leaves[node.slice().end() - 1] = output;
    const std::vector<int> later = crossing(network_, node.slice().end());
    std::erase_if(values.leaves, [&](const auto& value) {
      return std::find(later.begin(), later.end(), value.first) == later.end();
    });
    warm_up_ = static_cast<std::size_t>(passes - options_.repeats);
  }

  Network& network_;
  const ProfileOptions& options_;
  ProfileScope& scope_;
  std::vector<std::unique_ptr<MeasuredNode>> nodes_;
  Tensor input_;
  LossOf loss_;
  std::size_t warm_up_ = 0;
};

}  // namespace

std::vector<int> node_ends(const Network& network) {
  const auto& layers = network.layers();
  std::vector<int> readers(layers.size(), 0);
  for (const Network::Layer& layer : layers) {
    const std::set<int> read(layer.inputs.begin(), layer.inputs.end());
    for (int input : read) {
      if (input != Network::kInput) ++readers[static_cast<std::size_t>(input)];
    }
  }
  std::vector<int> ends;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const int before = static_cast<int>(i) - 1;
    const auto& [name, module, inputs] = layers[i];
    const bool follows =
        dynamic_cast<const BatchNorm2d*>(module.get()) || dynamic_cast<const Relu*>(module.get());
    const bool reads = std::find(inputs.begin(), inputs.end(), before) != inputs.end();
    if (i > 0 && follows && reads && readers[i - 1] == 1) ends.pop_back();
    ends.push_back(static_cast<int>(i) + 1);
  }
  return ends;
}

namespace {

// A pass over all nodes, or each alone.
std::vector<NodeCost> measure(Network& network, const ProfileOptions& options, bool apart) {
  ProfileScope scope(network, options.device, options.dtype);
  std::vector<NodeCost> costs;
  {
    Profiler profiler(network, options, scope);
    if (apart) {
      profiler.run_apart();
    } else {
      profiler.run();
    }
    costs = profiler.costs();
  }
  const double shared = scope.close_stream();
  for (NodeCost& cost : costs) cost.memory.workspace_bytes += shared;
  return costs;
}

}  // namespace

Profile profile_network(Network& network, const ProfileOptions& options) {
  CONVOY_CHECK(options.images >= 1, "profile: a micro-batch of {} images, expected at least 1",
               options.images);
  Profile profile{{}, node_ends(network), options.images};
  try {
    profile.nodes = measure(network, options, false);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::resource) throw;
    profile.nodes = measure(network, options, true);
  }
  context(options.device).memory().reset_peak();
  return profile;
}

Profile with_kinds(const std::vector<Profile>& kinds) {
  CONVOY_CHECK(!kinds.empty(), "profile: of no kind of device");
  Profile all = kinds.front();
  for (std::size_t kind = 1; kind < kinds.size(); ++kind) {
    for (std::size_t i = 0; i < all.nodes.size(); ++i) {
      const NodeCost& node = kinds[kind].nodes.at(i);
      all.nodes[i].times.push_back(node.times.front());
      all.nodes[i].output_bytes = std::max(all.nodes[i].output_bytes, node.output_bytes);
      for (double StageMemory::*bytes :
           {&StageMemory::parameter_bytes, &StageMemory::workspace_bytes, &StageMemory::kept_bytes,
            &StageMemory::weight_bytes, &StageMemory::backward_bytes}) {
        all.nodes[i].memory.*bytes = std::max(all.nodes[i].memory.*bytes, node.memory.*bytes);
      }
    }
  }
  return all;
}

Profile profile_at(const std::vector<Profile>& profiles, std::int64_t images) {
  CONVOY_CHECK(!profiles.empty(), "profile: none was measured");
  Profile profile = profiles.front();
  profile.images = images;
  for (std::size_t i = 0; i < profile.nodes.size(); ++i) {
    for (std::size_t kind = 0; kind < profile.nodes[i].times.size(); ++kind) {
      StageCost cost;
      for (const Profile& each : profiles) cost.times[each.images] = each.nodes.at(i).times[kind];
      profile.nodes[i].times[kind] = times_at(cost, images);
    }
  }
  return profile;
}

}  // namespace convoy
