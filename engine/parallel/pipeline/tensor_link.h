// Tensors over links: what crosses a stage's edge, one message a micro-batch and direction,
// compared with what the schedule expects. Inside a process messages may take a lane, which needs
// no threads; others go over a link, through the host's memory.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "comm/link.h"
#include "comm/parcel_lane.h"
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
  /// `lane`: takes the messages, at both ends the same one; null: they go over a link.
  TensorSender(HostCommunicator& group, int peer, int tag, const LinkOptions& options = {},
               std::shared_ptr<ParcelLane> lane = nullptr);

  /// Copies the values when the work queued for them has run, in the layout that they have where
  /// every process reads it alike, else row-major; the tensors may be freed, or written by work
  /// that is queued on their stream, when it returns. Without elements, or without tensors, only a
  /// header goes. Returns the seconds that it waited for a slot. `usage` for more tensors than a
  /// header holds.
  double send(std::int64_t batch, std::int64_t micro_batch, std::int64_t images,
              const std::vector<Tensor>& tensors);
  bool would_block() { return lane_ ? lane_->is_full() : link_->would_block(); }
  /// Returns when everything has left; before the end of a run that went well.
  void flush();

 private:
  HostCommunicator& group_;
  const std::shared_ptr<ParcelLane> lane_;
  std::optional<LinkSender> link_;  // without a lane
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
                 std::shared_ptr<ParcelLane> lane = nullptr);

  /// Waits for the next message and makes its tensors on `device`, in the layout that they had.
  /// `communication` with both values unless it is what was expected.
  ReceivedTensors receive(const ExpectedTensors& expected, const Device& device);

 private:
  ReceivedTensors receive_parcel(const ExpectedTensors& expected, const Device& device);
  ReceivedTensors receive_message(const ExpectedTensors& expected, const Device& device);
  /// As `header` says of them, if it is what was expected; `bytes`: of the values that came.
  std::vector<Tensor> make_tensors(const LinkHeader& header, std::size_t bytes,
                                   const ExpectedTensors& expected, const Device& device) const;

  HostCommunicator& group_;
  const std::shared_ptr<ParcelLane> lane_;
  std::optional<LinkReceiver> link_;  // without a lane
  const int from_;
};

}  // namespace convoy
