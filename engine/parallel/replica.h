// A module's values on another device, for one forward. The module itself runs: for that time its
// handles of parameters and buffers show the values here, so any module will do, without a clone.
//
//     weight on cpu:0 --to(cpu:1)--> its value here
//     its gradient    <--backward--  the gradient here
#pragma once

#include <vector>

#include "engine/nn/module.h"

namespace convoy {

/// Not for two threads at a time: the module is one.
class Replica {
 public:
  /// Queues the copies of all values, recorded for backward.
  Replica(Module& module, const Device& device);

  /// The module's output with the values here; it has its own ones back afterwards, whatever
  /// happens. What it writes to buffers and counters is lost, and batch norms leave their running
  /// statistics.
  Tensor forward(const std::vector<Tensor>& inputs);

 private:
  struct Value {
    Tensor of;    // the module's handle
    Tensor here;  // on the replica's device
  };
  class Guise;
  Module& module_;
  std::vector<Value> values_;
};

}  // namespace convoy
