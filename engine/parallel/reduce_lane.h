// The way of the gradients of one device and element type: their buckets, a communication stream
// and a communicator of their own. Buckets leave strictly in their order, which is the same on all
// ranks; which gradient comes first does not matter.
//
//     compute stream   ... dw5 | copy | dw4 | copy | dw3 ...        backward goes on
//     lane's stream                   wait | all_reduce bucket 1 | wait | all_reduce bucket 2
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "comm/communicator.h"
#include "engine/nn/module.h"
#include "engine/parallel/bucket.h"
#include "engine/parallel/bucket_plan.h"
#include "kernels/base/context.h"

namespace convoy {

/// Parameters here are numbered as in the list that the lane was made of.
class ReduceLane {
 public:
  using Clock = std::chrono::steady_clock;

  /// When things happened in a window, written by the streams.
  struct Times {
    Clock::duration all_reduce{};
    Clock::time_point begun, computed, reduced;
  };

  ReduceLane(NamedTensors parameters, std::unique_ptr<Communicator> communicator,
             const BucketLimits& limits);

  const NamedTensors& parameters() const { return parameters_; }
  Communicator& communicator() { return *communicator_; }
  Stream& stream() { return *stream_; }
  /// Layouts in which the gradients travel, the same on all ranks; row-major to begin with.
  void set_layouts(const std::vector<LayoutId>& layouts);

  void begin();
  bool has_collected(std::size_t member) const { return collected_[member]; }
  /// Takes the parameter's gradient, times `factor`, into its bucket, and sends what is full. The
  /// gradient is a view of the bucket from here on.
  void collect(std::size_t member, double factor);
  /// Takes zeros where there is no gradient; `present`: whether that counts as one.
  void collect_zeros(std::size_t member, bool present);
  /// Marks the end of the device's own work, then blocks until all buckets are reduced. Throws what
  /// went wrong on the way. Returns the number of ranks that had a gradient, for each parameter.
  std::vector<double> wait();
  /// Gives the memory over to the gradients; those of parameters in `unused` are dropped.
  void end(const std::vector<bool>& unused);
  const Times& times() const { return *times_; }
  /// What stands in the stream now is a sum that other ranks take part in.
  void mark_sent() { sent_ = stream_->record(); }
  /// Whether such a sum is still in work.
  bool busy() const { return !sent_.done(); }

 private:
  struct Place {
    std::size_t bucket;
    std::size_t slot;
  };
  Bucket& bucket_of(std::size_t member) { return buckets_[places_[member].bucket]; }
  const Bucket::Slot& slot_of(std::size_t member) const {
    return buckets_[places_[member].bucket].slots()[places_[member].slot];
  }
  void give_memory();
  void take(std::size_t member, Tensor gradient, bool present);
  void send_full_buckets();
  void send(Bucket& bucket);

  NamedTensors parameters_;
  TensorOptions options_;
  std::unique_ptr<Communicator> communicator_;
  BucketPlan plan_;
  std::vector<Bucket> buckets_;
  std::vector<Place> places_;    // of each parameter
  std::vector<bool> collected_;  // of each parameter, in this window
  std::vector<double> present_;  // 1 where this rank had a gradient
  std::size_t next_ = 0;         // bucket to be sent
  std::shared_ptr<Times> times_;
  Event sent_;
  std::unique_ptr<Stream> stream_;  // last: it finishes its work before the rest goes
};

}  // namespace convoy
