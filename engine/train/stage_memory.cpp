#include "engine/train/stage_memory.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "engine/autograd/grad_mode.h"
#include "engine/parallel/pipeline/profile_scope.h"
#include "kernels/base/context.h"

namespace convoy {
namespace {

double bytes_of(const Tensor& tensor) {
  return static_cast<double>(tensor.stored_count()) * static_cast<double>(size_of(tensor.dtype()));
}

// What one device's pool holds.
class PoolMeter {
 public:
  explicit PoolMeter(MemoryPool& pool) : pool_(pool) {}

  double in_use() const { return static_cast<double>(pool_.statistics().in_use); }
  /// The most that `work` has held, and what it has left, past what was there before.
  template <typename Work>
  std::pair<double, double> peak_of(const Work& work) {
    const double before = in_use();
    pool_.reset_peak();
    work();
    return {static_cast<double>(pool_.statistics().peak_in_use) - before, in_use() - before};
  }

 private:
  MemoryPool& pool_;
};

// What a forward and a backward of one micro-batch have held.
struct PassBytes {
  double forward_peak = 0;
  double kept = 0;
  double backward_peak = 0;
  double postponed = 0;
  double weights_peak = 0;
};

class StageProbe {
 public:
  StageProbe(const std::shared_ptr<NetworkSlice>& slice, const StageEntry& entry,
             const RunnerOptions& options, const StageRun& run, ProfileScope& scope)
      : slice_(slice),
        entry_(entry),
        options_(options),
        run_(run),
        scope_(scope),
        stage_(slice, options.recompute),
        meter_(scope.device().memory()) {
    find_layout();
  }

  PassBytes pass() {
    PassBytes bytes;
    std::tie(bytes.forward_peak, bytes.kept) = meter_.peak_of([&] { forward(); });
    bytes.backward_peak = meter_.peak_of([&] { backward(); }).first;
    const double before = meter_.in_use();
    if (run_.splits) {
      bytes.weights_peak = meter_
                               .peak_of([&] {
                                 stage_.backward_weights(0);
                                 scope_.stream().synchronize();
                               })
                               .first;
    }
    stage_.clear();
    scope_.stream().synchronize();
    bytes.postponed = before - meter_.in_use();
    return bytes;
  }

 private:
  // Maps come in the layout in which the stage before has made them: most likely that of this
  // one's.
  void find_layout() {
    if (slice_->first() == 0) return;
    const NoGradScope no_grad;
    slice_->run(made_up(entry_.inputs), [this](int, const Tensor& output) {
      if (output.shape().rank() == 4) layout_ = output.layout();
      return !layout_;
    });
  }

  std::vector<Tensor> made_up(const std::vector<CrossingTensor>& tensors) const {
    std::vector<Tensor> made;
    for (const Shape& shape : shapes_for(tensors, run_.images)) {
      const Tensor zeros = Tensor::zeros(shape, {options_.dtype, options_.device});
      made.push_back(layout_ && shape.rank() == 4 ? zeros.with_layout(*layout_) : zeros);
    }
    return made;
  }

  // Of labels all are class 0; of rows all are the network's own output's size.
  Stage::Finish finish() const {
    if (!run_.is_last) return nullptr;
    const LossHead head(options_);
    return [head, this](const Tensor& output) {
      const bool rows = options_.loss == LossKind::mse;
      const Tensor target = rows ? Tensor::zeros(output.shape(), output.options())
                                 : Tensor::zeros({run_.images}, {DType::i64, options_.device});
      return head.training_loss(output, target, 1);
    };
  }

  void forward() {
    stage_.forward(0, made_up(entry_.inputs), finish());
    scope_.stream().synchronize();
  }

  void backward() {
    std::vector<Tensor> gradients;
    if (!run_.is_last) {
      gradients = made_up(entry_.outputs);
      for (std::size_t i = 0; i < gradients.size(); ++i) {
        if (!entry_.outputs[i].flows) gradients[i] = Tensor();
      }
    }
    stage_.recompute(0);
    stage_.backward(0, gradients, !run_.splits);
    stage_.take_input_gradients(0);
    scope_.stream().synchronize();
  }

  std::shared_ptr<NetworkSlice> slice_;
  const StageEntry& entry_;
  const RunnerOptions& options_;
  const StageRun& run_;
  ProfileScope& scope_;
  Stage stage_;
  PoolMeter meter_;
  std::optional<LayoutId> layout_;
};

// Weights, gradients and states lie alike. A bucket is filled while what it replaces is still
// there; each may be larger than its limit by a parameter.
double parameter_bytes(const NetworkSlice& slice, const StageRun& run) {
  double parameters = 0, largest = 0, buffers = 0;
  for (const auto& [name, parameter] : slice.named_parameters()) {
    parameters += bytes_of(parameter);
    largest = std::max(largest, bytes_of(parameter));
  }
  for (const auto& [name, buffer] : slice.named_buffers()) buffers += bytes_of(buffer);
  double bytes = parameters * (2 + run.states) + buffers;
  if (!run.has_replicas) return bytes;
  return bytes + bucket_bytes(parameters, largest, run.buckets);
}

}  // namespace

StageMemory measure_stage_memory(const std::shared_ptr<NetworkSlice>& slice,
                                 const StageEntry& entry, const RunnerOptions& options,
                                 const StageRun& run) {
  MemoryPool& pool = context(options.device).memory();
  StageMemory memory;
  if (options.device_memory > 0) pool.set_cap(0);
  {
    ProfileScope scope(*slice, options.device, options.dtype);
    PassBytes bytes;
    {
      StageProbe probe(slice, entry, options, run, scope);
      probe.pass();  // makes gradients, layouts and what kernels keep
      bytes = probe.pass();
    }
    const auto images = static_cast<double>(run.images);
    memory.parameter_bytes = parameter_bytes(*slice, run);
    const double moving = std::max({0.0, bytes.forward_peak - bytes.kept, bytes.weights_peak});
    memory.kept_bytes = bytes.kept / images;
    memory.weight_bytes = bytes.postponed / images;
    memory.backward_bytes = std::max(0.0, bytes.backward_peak - moving) / images;
    memory.workspace_bytes = moving + scope.close_stream();
  }
  if (options.device_memory > 0) pool.set_cap(options.device_memory);
  pool.reset_peak();
  return memory;
}

}  // namespace convoy
