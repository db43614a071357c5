// The graph that ops record: one node per op, with its backward in two halves.
//
//     y = conv2d(x, w):   inputs half  dy -> dx   wanted at once by the layer below (or another
//     device)
//                         weights half dy -> dw   may wait: see PostponedWeights in backward.h
//
// A half's closure owns what it needs; the engine drops it as soon as it has run, which frees the
// saved tensors.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/tensor/tensor.h"

namespace convoy {

struct Remake;

/// Gradients of a half's tensors, in their order; undefined where there is none.
using Gradients = std::vector<Tensor>;
/// dy -> gradients; `wanted[i]` tells whether anybody uses the i-th one.
using BackwardHalf = std::function<Gradients(const Tensor& dy, const std::vector<bool>& wanted)>;

/// A tensor kept for backward. Reading it checks that it has not been written since.
class SavedTensor {
 public:
  SavedTensor() = default;
  /// Keeps the values, not the graph behind them: an op may save its own output.
  SavedTensor(const char* op, const Tensor& tensor);
  /// Keeps how to make the values again where their maker offered that (see Storage::offer_remake),
  /// and not the memory. For what is read once.
  static SavedTensor remade(const char* op, const Tensor& tensor);

  bool defined() const { return tensor_.defined() || remake_; }
  /// `usage` if the values, or those that they are made from, were overwritten since.
  Tensor get() const;

 private:
  const char* op_ = "";
  Tensor tensor_;
  std::uint64_t version_ = 0;
  std::shared_ptr<const Remake> remake_;
};

/// Where a gradient goes: to the node that made the tensor, or to a leaf, or nowhere.
struct Edge {
  std::shared_ptr<Node> node;
  std::shared_ptr<Tensor::Impl> leaf;
  explicit operator bool() const { return node || leaf; }
};

class Node {
 public:
  explicit Node(const char* op);
  ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  const char* op() const { return op_; }
  /// Rises with every node made in this process: a node's inputs have smaller numbers.
  std::uint64_t number() const { return number_; }
  /// Drops both halves and what they own: a second backward finds no inputs half.
  void release();

  std::vector<Edge> inputs;
  std::vector<Edge> weights;
  BackwardHalf inputs_half;
  BackwardHalf weights_half;
  /// Of the output: what dy must look like.
  Shape shape;
  LayoutId layout = kPlain;

 private:
  const char* op_;
  std::uint64_t number_;
};

/// Records that `y` was made by `op` from `inputs` and `weights`, unless nobody needs a gradient.
/// Returns y. The inputs half always runs first; an op without weights leaves the second half out.
Tensor record(const char* op, Tensor y, const std::vector<Tensor>& inputs, BackwardHalf inputs_half,
              const std::vector<Tensor>& weights = {}, BackwardHalf weights_half = nullptr);

}  // namespace convoy
