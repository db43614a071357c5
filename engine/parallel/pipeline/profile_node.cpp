#include "engine/parallel/pipeline/profile_node.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "engine/tensor/storage.h"

namespace convoy {
namespace {

double bytes_of_values(const Tensor& tensor) {
  return static_cast<double>(tensor.stored_count()) * static_cast<double>(size_of(tensor.dtype()));
}

// How many hold the values of each layer's output: one more where a graph keeps them.
std::map<int, long> users_of(const ProfileValues& values, const std::set<int>& layers) {
  std::map<int, long> users;
  for (int layer : layers) users[layer] = values.leaves.at(layer).storage().use_count();
  return users;
}

}  // namespace

double seconds_of(Stream& stream, const std::function<void()>& work) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  work();
  stream.synchronize();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

MeasuredNode::MeasuredNode(const Network& network, int first, int end, DeviceContext& device,
                           Stream& stream)
    : slice_(network, first, end), device_(device), stream_(stream) {
  for (const Network::Layer& layer : slice_.layers()) {
    for (int input : layer.inputs) {
      if (input < first) reads_.insert(input);
    }
  }
}

// Starts the peak anew.
double MeasuredNode::in_use() {
  device_.memory().reset_peak();
  return static_cast<double>(device_.memory().statistics().in_use);
}

double MeasuredNode::peak() const {
  return static_cast<double>(device_.memory().statistics().peak_in_use);
}

void MeasuredNode::run(ProfileValues& values, const LossOf& loss) {
  std::vector<Tensor> inputs;
  for (int input : slice_.inputs()) inputs.push_back(values.leaves.at(input));
  const std::vector<Tensor> outputs = slice_.run(inputs);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (slice_.outputs()[i] == slice_.end() - 1) root_ = outputs[i];
  }
  output_bytes_ = bytes_of_values(root_);
  if (loss) root_ = loss(root_);
}

void MeasuredNode::forward(ProfileValues& values, const LossOf& loss) {
  const std::map<int, long> users = users_of(values, reads_);
  const double before = in_use();
  passes_.emplace_back().forward = seconds_of(stream_, [&] { run(values, loss); });
  memory_ = {};
  const double after = static_cast<double>(device_.memory().statistics().in_use);
  memory_.workspace_bytes = peak() - after;
  note_kept(values, users, after - before);
  if (loss) return;
  Tensor leaf = root_.detach();
  leaf.set_requires_grad(root_.requires_grad());
  values.leaves[slice_.end() - 1] = leaf;
}

// What stays when the output has been sent: `more` bytes have been taken, and some inputs are kept.
void MeasuredNode::note_kept(ProfileValues& values, const std::map<int, long>& users, double more) {
  const bool keeps_output = root_.storage().use_count() > 1;
  memory_.kept_bytes = more - (keeps_output ? 0 : bytes_of_values(root_));
  keeps_.clear();
  for (const auto& [input, count] : users_of(values, reads_)) {
    if (count == users.at(input) || !values.kept.insert(input).second) continue;
    keeps_.insert(input);
    memory_.kept_bytes += bytes_of_values(values.leaves.at(input));
  }
}

void MeasuredNode::backward(ProfileValues& values) {
  Tensor dy;
  if (const auto output = values.leaves.find(slice_.end() - 1); output != values.leaves.end()) {
    dy = std::exchange(output->second.grad(), {});
    values.leaves.erase(output);
  }
  if (!root_.requires_grad()) {  // nothing to learn so far
    root_ = Tensor();
    return;
  }
  PostponedWeights weights;
  const double before = in_use();
  passes_.back().backward_input = seconds_of(stream_, [&] { run_back(weights, std::move(dy)); });
  memory_.backward_bytes = std::max(0.0, peak() - before);
  run_weights(weights, values);
}

void MeasuredNode::run_back(PostponedWeights& weights, Tensor dy) {
  const Tensor root = std::exchange(root_, {});
  std::vector<Tensor> gradients;
  if (dy.defined()) gradients.push_back(std::move(dy));
  convoy::backward({root}, gradients, {.postponed = &weights});
}

void MeasuredNode::run_weights(PostponedWeights& weights, ProfileValues& values) {
  const std::map<int, long> users = users_of(values, keeps_);
  const double before = in_use();
  passes_.back().backward_weight = seconds_of(stream_, [&] { weights.run(); });
  memory_.workspace_bytes = std::max(memory_.workspace_bytes, peak() - before);
  const double after = static_cast<double>(device_.memory().statistics().in_use);
  memory_.weight_bytes = std::max(0.0, before - after);
  for (const auto& [input, count] : users_of(values, keeps_)) {
    if (count == users.at(input)) continue;
    memory_.weight_bytes += bytes_of_values(values.leaves.at(input));
  }
}

}  // namespace convoy
