// Tensors over links: what crosses a stage's edge, one message a micro-batch and direction,
// compared with what the schedule expects. Values go with the message, through the host's memory,
// or beside it in a lane between GPUs.
#pragma once

#include <cstdint>
#include <vector>

#include "comm/device_lane.h"
#include "comm/link.h"
#include "engine/tensor/tensor.h"

namespace convoy {

enum class LinkDirection { activations, gradients };

/// The tag of the messages between the stages `edge` and `edge` + 1; the pair of workers may have
/// several edges. The tags from kLinkTestTag on are the links' (test_links() has the first one).
inline constexpr int kLinkTestTag = 1024;
int link_tag(int edge, LinkDirection direction);

/// What the next message should be: values of `shapes`, all of one type.
struct ExpectedTensors {
  std::int64_t batch = 0;
  std::int64_t micro_batch = 0;
  std::int64_t images = 0;
  std::vector<Shape> shapes;
  DType dtype = DType::f32;
};

/// The sender's end of one edge and direction.
class TensorSender {
 public:
  /// `lane`: for the values, at both ends the same one; null: they go with the message.
  TensorSender(HostCommunicator& group, int peer, int tag, const LinkOptions& options = {},
               std::shared_ptr<DeviceLane> lane = nullptr)
      : link_(group, peer, tag, options), lane_(std::move(lane)) {}

  /// Copies the values when the work queued for them has run, in the layout that they have where
  /// every process reads it alike, else row-major; the tensors may be freed or written when it
  /// returns. Without elements, or without tensors, only a header goes.
  /// Returns the seconds that it waited for a slot. `usage` for more tensors than a header holds.
  double send(std::int64_t batch, std::int64_t micro_batch, std::int64_t images,
              const std::vector<Tensor>& tensors);
  bool would_block() { return link_.would_block(); }
  /// Returns when everything has left; before the end of a run that went well.
  void flush() { link_.flush(); }

 private:
  LinkSender link_;
  const std::shared_ptr<DeviceLane> lane_;
};

/// What a message brought: tensors of the expected shapes, in order.
struct ReceivedTensors {
  std::vector<Tensor> tensors;
  /// Of this worker's steady clock: when the peer called send(), and when the last byte was here.
  double sent_at = 0;
  double arrived_at = 0;
};

/// The receiver's end of one edge and direction.
class TensorReceiver {
 public:
  TensorReceiver(HostCommunicator& group, int peer, int tag, const LinkOptions& options = {},
                 std::shared_ptr<DeviceLane> lane = nullptr)
      : link_(group, peer, tag, options), lane_(std::move(lane)), from_(peer) {}

  /// Waits for the next message and makes its tensors on `device`, in the layout that they had.
  /// `communication` with both values unless it is what was expected.
  ReceivedTensors receive(const ExpectedTensors& expected, const Device& device);

 private:
  LinkReceiver link_;
  const std::shared_ptr<DeviceLane> lane_;
  int from_;
};

}  // namespace convoy
