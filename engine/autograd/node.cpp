#include "engine/autograd/node.h"

#include <atomic>

#include "engine/autograd/grad_mode.h"
#include "engine/tensor/storage.h"
#include "kernels/base/error.h"

namespace convoy {
namespace {

std::uint64_t next_number() {
  static std::atomic<std::uint64_t> counter{0};
  return ++counter;
}

std::vector<Edge> edges_to(const std::vector<Tensor>& tensors) {
  std::vector<Edge> edges;
  for (const Tensor& tensor : tensors) {
    Edge edge;
    if (tensor.defined()) {
      edge.node = tensor.impl()->node;
      if (!edge.node && tensor.impl()->requires_grad) edge.leaf = tensor.impl();
    }
    edges.push_back(std::move(edge));
  }
  return edges;
}

bool any_needs_gradient(const std::vector<Tensor>& tensors) {
  for (const Tensor& tensor : tensors) {
    if (tensor.requires_grad()) return true;
  }
  return false;
}

}  // namespace

SavedTensor::SavedTensor(const char* op, const Tensor& tensor)
    : op_(op), tensor_(tensor.detach()), version_(tensor.storage()->version()) {}

SavedTensor SavedTensor::remade(const char* op, const Tensor& tensor) {
  SavedTensor result;
  result.op_ = op;
  result.remake_ = tensor.storage()->remake();
  const Remake* remake = result.remake_.get();
  // A part of the values, or a view of them, is not what the maker makes.
  const bool same = remake && remake->shape == tensor.shape() && remake->layout == tensor.layout();
  return same ? result : SavedTensor(op, tensor);
}

Tensor SavedTensor::get() const {
  if (remake_) return remake_->make();
  CONVOY_CHECK(tensor_.storage()->version() == version_,
               "{}: {} was saved for backward and overwritten since (version {}, expected {})", op_,
               describe(tensor_), tensor_.storage()->version(), version_);
  return tensor_;
}

Node::Node(const char* op) : op_(op), number_(next_number()) {}

// A long chain of nodes must not be destroyed by recursion.
Node::~Node() {
  std::vector<std::shared_ptr<Node>> work;
  auto take_edges = [&work](Node& node) {
    for (std::vector<Edge>* edges : {&node.inputs, &node.weights}) {
      for (Edge& edge : *edges) {
        if (edge.node) work.push_back(std::move(edge.node));
      }
      edges->clear();
    }
  };
  take_edges(*this);
  while (!work.empty()) {
    std::shared_ptr<Node> node = std::move(work.back());
    work.pop_back();
    if (node.use_count() == 1) take_edges(*node);
  }
}

void Node::release() {
  inputs_half = nullptr;
  weights_half = nullptr;
}

Tensor record(const char* op, Tensor y, const std::vector<Tensor>& inputs, BackwardHalf inputs_half,
              const std::vector<Tensor>& weights, BackwardHalf weights_half) {
  if (!grad_enabled() || !(any_needs_gradient(inputs) || any_needs_gradient(weights))) return y;
  auto node = std::make_shared<Node>(op);
  node->inputs = edges_to(inputs);
  node->weights = edges_to(weights);
  node->inputs_half = std::move(inputs_half);
  if (any_needs_gradient(weights)) node->weights_half = std::move(weights_half);
  node->shape = y.shape();
  node->layout = y.layout();
  y.impl()->node = std::move(node);
  return y;
}

}  // namespace convoy
