// Sums gradients over the workers of a group while backward still runs. As gradients become final
// they fill buckets, and each full bucket is all-reduced beside the computation; finish() waits for
// the rest.
//
//     for each batch of the window but the last: forward, backward          nothing is sent
//     arm(); forward, backward; finish();                                   every grad is the sum
//     optimizer.step(); drop the gradients
//
// Gradients become views of the buckets: one copy in, none out, and no second set of them.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "engine/nn/module.h"
#include "engine/parallel/bucket_plan.h"
#include "engine/parallel/reduce_lane.h"

namespace convoy {

struct ReducerOptions {
  BucketLimits buckets;
  /// A parameter may be without a gradient: zeros stand for it, and where no rank has one its
  /// gradient stays undefined. Otherwise that is `usage` on all ranks.
  bool allow_unused = false;
  /// Sums gradients; null: the communicator that carries all else does that too. Of the same ranks.
  Communicator* gradients = nullptr;
};

/// The weight of this rank's gradients: they count `weight` / (sum of `part` over the ranks).
struct GradientShare {
  double weight = 1;
  double part = 1;
};

/// Seconds since the reducer was made: on this rank, of all lanes.
struct ReduceTimes {
  double all_reduce = 0;  ///< in all-reduce, waiting for slower ranks included
  double exposed = 0;     ///< of these, after the device had nothing else to do
};

/// Used by one thread, that of its worker. All ranks make the same calls, with parameters of the
/// same names, shapes, types and order.
class Reducer {
 public:
  /// Collective. Takes the parameters that require a gradient; they stay on their devices.
  /// `communicator` must outlive it. `usage` that names the first parameter in which ranks differ.
  Reducer(const NamedTensors& parameters, Communicator& communicator,
          const ReducerOptions& options = {});
  /// In the middle of a window it aborts the group: the others would wait for ever. Not while an
  /// exception passes: whoever catches that tells the group what went wrong.
  ~Reducer();
  Reducer(const Reducer&) = delete;
  Reducer& operator=(const Reducer&) = delete;

  /// Begins the reduction: the next backward is the last one of its window. Gradients are added up
  /// as they are, so they must have been dropped after the last window.
  void arm();
  /// As arm(), for a weighted sum. With weights that add up to 1, gradients of the last window may
  /// still be there: the result is added to them.
  void arm(const GradientShare& share);
  bool is_armed() const { return armed_; }
  /// This rank has no images in the window: zeros stand for gradients that it does not have.
  void absent() { absent_ = true; }
  /// Sends what is left and blocks until every gradient is the sum over ranks. `usage` with names
  /// and ranks, on all ranks, if one has no gradient of a parameter.
  void finish();

  /// Collective: `usage` that names the first tensor in which ranks differ in name, type or shape.
  /// `what` each is: "buffer".
  void check_alike(const char* what, const NamedTensors& tensors);
  /// Collective, blocks: every rank gets rank 0's values. For any tensors, of the same shapes on
  /// all ranks; layouts may differ. Small ones travel together.
  void broadcast(const std::vector<Tensor>& tensors);

  /// How gradients lie while they travel, the same on all ranks, one for each parameter that
  /// requires a gradient; row-major until the first window has shown the parameters' own.
  const std::vector<LayoutId>& layouts() const { return layouts_; }
  ReduceTimes times() const { return times_; }
  int rank() const { return control_->rank(); }
  int size() const { return control_->size(); }

 private:
  struct Place {
    std::size_t lane;
    std::size_t member;
  };
  void check_agreement(const char* what, const std::string& mine);
  void broadcast_one(const Tensor& tensor);
  Stream& stream_of(const Device& device);
  void make_lanes(const ReducerOptions& options);
  void add_hooks();
  void begin();
  void on_gradient(std::size_t parameter);
  void collect_rest();
  double factor();
  std::vector<double> wait();
  void check_present(const std::vector<double>& ranks);
  [[noreturn]] void fail_missing();
  void agree_on_layouts();
  void set_layouts(const std::vector<bool>& agreed);
  void add_times();

  const ReducerOptions options_;
  std::unique_ptr<Communicator> control_;
  NamedTensors parameters_;
  std::vector<Place> places_;  // of each parameter
  std::vector<std::unique_ptr<ReduceLane>> lanes_;
  std::map<Device, std::unique_ptr<Stream>> streams_;  // for what is not a gradient
  std::vector<std::uint64_t> hooks_;
  std::vector<bool> had_;  // gradients of this window, this rank's own
  bool armed_ = false;
  bool absent_ = false;
  double weight_ = 1;
  Tensor parts_;  // sum over ranks, on its way
  std::optional<double> factor_;
  std::vector<LayoutId> layouts_;
  int layout_tries_ = 0;
  bool layouts_settled_ = false;
  ReduceTimes times_;
};

}  // namespace convoy
