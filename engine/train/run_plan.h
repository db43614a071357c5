// What a run is to do: its epochs, windows, learning rate and end. Pure counting, the same in all
// processes.
#pragma once

#include <cstdint>

#include "engine/optim/lr_schedule.h"
#include "engine/train/batch_plan.h"
#include "engine/train/progress_state.h"
#include "engine/train/trainer.h"

namespace convoy {

class RunPlan {
 public:
  /// Of a whole run of `job`, whose settings are resolved; the job outlives this. `data` without
  /// images, `usage` where a batch norm would see one value per channel.
  RunPlan(const TrainingJob& job, const Division& division);

  /// The rest of the run from `state` on. With another batch size it has another number of steps,
  /// and its last batch may be smaller: `usage` as above.
  void go_on_from(const ProgressState& state);

  /// The next optimizer step's images; its learning rate is that of step `state.step` + 1.
  WindowPlan next_window(const ProgressState& state) const {
    return epoch_.window_at(state.images_done);
  }
  /// The shares ([batch][replica]) of all windows from `state` on, each shape once.
  std::vector<std::vector<std::vector<std::int64_t>>> shapes_from(const ProgressState& state) const;
  double lr_at(std::int64_t step) const { return schedule_.at(step); }

  /// All images of the epoch are done, its evaluation is not.
  bool evaluation_is_open(const ProgressState& state) const {
    return state.images_done == epoch_.images;
  }
  bool epoch_goes_on(const ProgressState& state) const {
    return state.images_done < epoch_.images && state.step < last_step_;
  }
  bool reached_end(const ProgressState& state) const {
    return state.step >= last_step_ || state.epoch > last_epoch_;
  }
  /// Whether `epoch` ends with an evaluation.
  bool evaluates_after(std::int64_t epoch) const;
  /// Whether a checkpoint is due after `step`, within an epoch or at the end of one.
  bool saves_within(std::int64_t step) const;
  bool saves_after_epoch(const ProgressState& state) const;

  const Division& division() const { return division_; }
  std::int64_t steps_per_epoch() const { return epoch_.steps(); }
  std::int64_t last_step() const { return last_step_; }
  /// The fewest images that batch norm can normalise together.
  std::int64_t least_group() const { return least_group_; }

 private:
  void set_length(const ProgressState& state);
  void check_groups(const EpochPlan& plan) const;

  const TrainingJob& job_;
  const Settings& settings_;
  const Division division_;
  EpochPlan epoch_;
  LrSchedule schedule_;
  std::int64_t last_epoch_ = 0;
  std::int64_t last_step_ = 0;
  std::int64_t least_group_ = 1;
};

}  // namespace convoy
