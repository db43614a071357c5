// What a profile does to a network, or to a part of one, and undoes: moves it to a device and a
// stream of its own, sets gradients and statistics aside.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "engine/nn/network.h"
#include "engine/nn/slice.h"
#include "kernels/base/context.h"

namespace convoy {

class BatchNorm2d;
class Communicator;

/// While it lives, `module` trains without leaving a trace: no running statistics change and
/// gradients are set aside. What enter() has moved goes back at the end.
class ProfileScope {
 public:
  ProfileScope(Module& module, const Device& device, DType dtype);
  ~ProfileScope();
  ProfileScope(const ProfileScope&) = delete;
  ProfileScope& operator=(const ProfileScope&) = delete;

  DeviceContext& device() { return device_; }
  Stream& stream() { return *stream_; }

  /// Moves `module` (the network or a part of it) to the device and its element type.
  void enter(Module& module);
  /// Gives it the values, places and layouts that it had; its gradients are dropped.
  void leave(Module& module);
  /// Bytes that the stream's kernels share. Ends the use of the stream.
  double close_stream();

 private:
  // Where a tensor's values were: they stay there, untouched.
  struct Home {
    Tensor tensor;
    Tensor gradient;
    Tensor values;
  };

  Module& module_;
  DeviceContext& device_;
  DType dtype_;
  bool trained_;
  std::vector<Home> homes_;
  std::vector<std::pair<BatchNorm2d*, Communicator*>> groups_;
  NoRunningUpdates no_updates_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<StreamScope> on_stream_;
};

}  // namespace convoy
