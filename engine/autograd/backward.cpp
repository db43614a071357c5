#include "engine/autograd/backward.h"

#include <map>
#include <unordered_set>
#include <utility>

#include "engine/autograd/grad_mode.h"
#include "engine/tensor/storage.h"
#include "kernels/base/error.h"
#include "kernels/elementwise.h"
#include "kernels/kernel_list.h"

namespace convoy {
namespace {

using OpenLeaves = std::unordered_map<Tensor::Impl*, int>;
using Ends = std::deque<std::function<void()>>;

// Where at_backward_end() puts its work: of the innermost backward of this thread.
thread_local Ends* current_ends = nullptr;

class EndsScope {
 public:
  explicit EndsScope(Ends& ends) : outer_(std::exchange(current_ends, &ends)) {}
  ~EndsScope() { current_ends = outer_; }
  EndsScope(const EndsScope&) = delete;
  EndsScope& operator=(const EndsScope&) = delete;

 private:
  Ends* outer_;
};

// Work may add more work.
void call_all(Ends& ends) {
  while (!ends.empty()) {
    const std::function<void()> work = std::move(ends.front());
    ends.pop_front();
    work();
  }
}

// No other handle sees these values, so they may be overwritten or kept.
bool is_sole_owner(const Tensor& tensor) {
  return tensor.impl().use_count() == 1 && tensor.storage().use_count() == 1;
}

// sum += part, in place where the memory is ours alone.
void add_to(Tensor& sum, const Tensor& part) {
  const Tensor aligned = part.with_layout(sum.layout());
  Tensor target = is_sole_owner(sum) ? sum.detach() : Tensor::empty_like(sum);
  target.before_write();  // a copy to another device may still read what was ours
  context(sum.device())
      .kernels()
      .binary_forward(current_stream(sum.device()), Binary::add, sum.stored_count(), sum.buffer(),
                      aligned.buffer(), target.buffer());
  sum = std::move(target);
}

void accumulate_leaf(Tensor::Impl& leaf, Tensor part) {
  const bool ours = part.layout() != leaf.layout || is_sole_owner(part);
  part = part.with_layout(leaf.layout);
  if (!leaf.grad.defined()) {
    leaf.grad = ours ? part.detach() : part.clone();
    return;
  }
  if (leaf.grad.layout() != leaf.layout) leaf.grad = leaf.grad.with_layout(leaf.layout);
  leaf.grad.before_write();
  context(part.device())
      .kernels()
      .binary_forward(current_stream(part.device()), Binary::add, part.stored_count(),
                      leaf.grad.buffer(), part.buffer(), leaf.grad.buffer());
}

// One of the contributions that a leaf waits for has come (or turned out to be none).
void settle_leaf(const std::shared_ptr<Tensor::Impl>& leaf, Tensor part, OpenLeaves& open) {
  if (part.defined()) accumulate_leaf(*leaf, std::move(part));
  auto found = open.find(leaf.get());
  if (found == open.end() || --found->second > 0) return;
  open.erase(found);
  Tensor handle(leaf);
  for (const auto& hook : leaf->hooks) hook.call(handle);
}

std::vector<bool> wanted_of(const std::vector<Edge>& edges) {
  std::vector<bool> wanted;
  for (const Edge& edge : edges) wanted.push_back(static_cast<bool>(edge));
  return wanted;
}

bool leads_to_nodes(const std::vector<Edge>& edges) {
  for (const Edge& edge : edges) {
    if (edge.node) return true;
  }
  return false;
}

}  // namespace

PostponedWeights::PostponedWeights() = default;
PostponedWeights::~PostponedWeights() = default;
PostponedWeights::PostponedWeights(PostponedWeights&&) noexcept = default;
PostponedWeights& PostponedWeights::operator=(PostponedWeights&&) noexcept = default;

void PostponedWeights::run() {
  NoGradScope no_grad;
  const EndsScope scope(ends_);
  while (!tasks_.empty()) {
    const std::shared_ptr<Node> node = tasks_.front().node;
    Gradients gradients = node->weights_half(tasks_.front().dy, wanted_of(node->weights));
    // Done, whatever a hook below throws: another run() must not meet the node again.
    tasks_.pop_front();
    node->release();
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      if (const Edge& edge = node->weights[i]; edge.leaf) {
        settle_leaf(edge.leaf, std::move(gradients[i]), open_);
      }
    }
  }
  call_all(ends_);
}

// One call of backward(): counts what each node and leaf waits for, then runs nodes as they are
// ready.
class BackwardRun {
 public:
  explicit BackwardRun(const BackwardOptions& options)
      : options_(options), open_(options.postponed ? options.postponed->open_ : own_open_) {}

  void add_root(const Tensor& root, const Tensor& gradient);
  void run();

 private:
  void discover(const std::shared_ptr<Node>& root);
  void run_node(const std::shared_ptr<Node>& node, Tensor dy);
  void run_weights_half(const std::shared_ptr<Node>& node, Tensor dy);
  void deliver(const std::vector<Edge>& edges, Gradients gradients);
  void arrive(const std::shared_ptr<Node>& node, Tensor part);
  void end();

  struct Waiting {
    int parts = 0;  // still to come
    Tensor dy;
  };
  const BackwardOptions& options_;
  OpenLeaves own_open_;
  OpenLeaves& open_;
  std::unordered_map<Node*, Waiting> waiting_;
  std::map<std::uint64_t, std::shared_ptr<Node>> ready_;
  std::vector<std::pair<std::shared_ptr<Node>, Tensor>> roots_;
  std::vector<std::pair<std::shared_ptr<Tensor::Impl>, Tensor>> leaf_roots_;
  Ends ends_;
};

void BackwardRun::add_root(const Tensor& root, const Tensor& gradient) {
  CONVOY_CHECK(root.requires_grad(),
               "backward: {} does not depend on anything that requires a gradient", describe(root));
  CONVOY_CHECK(gradient.defined() || root.numel() == 1,
               "backward: {} has {} elements and no gradient was given for it", describe(root),
               root.numel());
  Tensor dy = gradient.defined() ? gradient.detach() : Tensor::ones(root.shape(), root.options());
  CONVOY_CHECK(dy.shape() == root.shape() && dy.dtype() == root.dtype(),
               "backward: the gradient is {}, the root is {}", describe(dy), describe(root));
  check_same_device("backward", {root, dy});
  if (root.is_leaf()) {
    ++open_[root.impl().get()];
    leaf_roots_.emplace_back(root.impl(), std::move(dy));
    return;
  }
  const std::shared_ptr<Node>& node = root.impl()->node;
  discover(node);
  ++waiting_[node.get()].parts;
  roots_.emplace_back(node, std::move(dy));
}

void BackwardRun::discover(const std::shared_ptr<Node>& root) {
  std::vector<Node*> work;
  auto visit = [&](Node* node) {
    if (waiting_.try_emplace(node).second) work.push_back(node);
  };
  visit(root.get());
  while (!work.empty()) {
    Node* node = work.back();
    work.pop_back();
    CONVOY_CHECK(node->inputs_half,
                 "backward: the graph behind {} has been used and freed; run forward again or "
                 "keep it with retain_graph",
                 node->op());
    for (const std::vector<Edge>* edges : {&node->inputs, &node->weights}) {
      for (const Edge& edge : *edges) {
        if (edge.leaf) ++open_[edge.leaf.get()];
        if (!edge.node) continue;
        visit(edge.node.get());
        ++waiting_[edge.node.get()].parts;
      }
    }
  }
}

void BackwardRun::run() {
  NoGradScope no_grad;
  const EndsScope scope(ends_);
  for (auto& [node, dy] : roots_) arrive(node, std::move(dy));
  roots_.clear();
  for (auto& [leaf, dy] : leaf_roots_) settle_leaf(leaf, std::move(dy), open_);
  leaf_roots_.clear();
  while (!ready_.empty()) {
    auto last = std::prev(ready_.end());
    const std::shared_ptr<Node> node = std::move(last->second);
    ready_.erase(last);
    run_node(node, std::move(waiting_[node.get()].dy));
  }
  end();
}

void BackwardRun::end() {
  if (options_.postponed && !options_.postponed->empty()) {
    for (auto& work : ends_) options_.postponed->ends_.push_back(std::move(work));
    return;
  }
  call_all(ends_);
}

void BackwardRun::arrive(const std::shared_ptr<Node>& node, Tensor part) {
  Waiting& waiting = waiting_[node.get()];
  if (part.defined()) {
    part = part.with_layout(node->layout);
    if (waiting.dy.defined()) {
      add_to(waiting.dy, part);
    } else {
      waiting.dy = std::move(part);
    }
  }
  if (--waiting.parts == 0) ready_.emplace(node->number(), node);
}

void BackwardRun::run_node(const std::shared_ptr<Node>& node, Tensor dy) {
  if (!dy.defined()) {  // nothing flows here: the nodes below must not wait for it
    deliver(node->inputs, Gradients(node->inputs.size()));
    deliver(node->weights, Gradients(node->weights.size()));
    return;
  }
  Gradients gradients = node->inputs_half(dy, wanted_of(node->inputs));
  if (!options_.retain_graph) node->inputs_half = nullptr;
  deliver(node->inputs, std::move(gradients));
  run_weights_half(node, std::move(dy));
}

void BackwardRun::run_weights_half(const std::shared_ptr<Node>& node, Tensor dy) {
  if (node->weights_half && options_.postponed && !leads_to_nodes(node->weights)) {
    options_.postponed->tasks_.push_back({node, std::move(dy)});
    return;
  }
  if (node->weights_half) {
    deliver(node->weights, node->weights_half(dy, wanted_of(node->weights)));
  }
  if (!options_.retain_graph) node->release();
}

void BackwardRun::deliver(const std::vector<Edge>& edges, Gradients gradients) {
  for (std::size_t i = 0; i < edges.size(); ++i) {
    if (edges[i].leaf) settle_leaf(edges[i].leaf, std::move(gradients[i]), open_);
    if (edges[i].node) arrive(edges[i].node, std::move(gradients[i]));
  }
}

void backward(const std::vector<Tensor>& roots, const std::vector<Tensor>& gradients,
              const BackwardOptions& options) {
  CONVOY_CHECK(gradients.empty() || gradients.size() == roots.size(),
               "backward: {} roots, {} gradients", roots.size(), gradients.size());
  CONVOY_CHECK(!(options.postponed && options.retain_graph),
               "backward: a graph with postponed weights cannot be kept");
  BackwardRun run(options);
  for (std::size_t i = 0; i < roots.size(); ++i) {
    run.add_root(roots[i], gradients.empty() ? Tensor() : gradients[i]);
  }
  run.run();
}

void at_backward_end(std::function<void()> work) {
  CONVOY_CHECK(current_ends, "at_backward_end: called outside of a backward");
  current_ends->push_back(std::move(work));
}

void Tensor::backward() const {
  convoy::backward({*this});
}

}  // namespace convoy
