// Work of a stream recorded once, to be run again and again as one piece.
#pragma once

#include <cstddef>

namespace convoy {

/// What a stream was told to do between begin_capture() and end_capture() of its context: kernels
/// and copies inside the device, with the memory that they named then. All of that memory must stay
/// allocated; what the stream itself allocated and freed meanwhile is kept for it. The graph goes
/// before its stream does.
class Graph {
 public:
  virtual ~Graph() = default;
  /// Queues all of the work in the stream that was captured.
  virtual void launch() = 0;
  /// Kernels, copies and fills in it.
  virtual std::size_t nodes() const = 0;
};

}  // namespace convoy
