// Runs a recorded graph backwards. Nodes run in falling order of their numbers and gradients add up
// in that order, so the same graph gives the same bits each time.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "engine/autograd/node.h"

namespace convoy {

/// Weight gradients that a backward has left for later: a schedule runs them when it has time. Runs
/// in the order in which backward met them, so the sums are those of a backward that did not wait.
class PostponedWeights {
 public:
  PostponedWeights();
  ~PostponedWeights();
  PostponedWeights(PostponedWeights&&) noexcept;
  PostponedWeights& operator=(PostponedWeights&&) noexcept;

  bool empty() const { return tasks_.empty(); }
  /// Computes and adds all of them. The hooks of gradients that become final are called, and after
  /// the last one what at_backward_end() was given. After an error, another run() goes on with
  /// those that have not been computed.
  void run();

 private:
  friend class BackwardRun;
  struct Task {
    std::shared_ptr<Node> node;
    Tensor dy;
  };
  std::deque<Task> tasks_;
  std::unordered_map<Tensor::Impl*, int> open_;  // contributions still to come, per leaf
  std::deque<std::function<void()>> ends_;       // of backwards whose weights are here
};

struct BackwardOptions {
  /// Where given, the weights halves are put here instead of being run.
  PostponedWeights* postponed = nullptr;
  /// Keep the graph for another backward.
  bool retain_graph = false;
};

/// Adds the gradients of sum(roots[i] * gradients[i]) to the grad of every leaf. An undefined
/// gradient stands for 1 and needs a root of one element. `usage` if nothing was recorded, a
/// gradient's shape or device differs, or the graph has been used and freed.
void backward(const std::vector<Tensor>& roots, const std::vector<Tensor>& gradients = {},
              const BackwardOptions& options = {});

/// For hooks and backward halves: calls `work` once when the backward that runs on this thread has
/// made all gradients final, before it returns; with postponed weights that is the end of their
/// run(). Not called if that backward fails. `usage` outside of a backward.
void at_backward_end(std::function<void()> work);

}  // namespace convoy
