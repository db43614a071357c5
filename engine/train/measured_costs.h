// What the planner knows of the devices at hand, all of it measured: the network's nodes on all
// devices at once, as in a run, and on one alone; links, all-reduce and optimizer.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/parallel/pipeline/planner.h"
#include "engine/parallel/pipeline/profile.h"
#include "engine/train/ranks.h"
#include "engine/train/trainer.h"

namespace convoy {

/// Tensors of state that the optimizer of resolved settings keeps for a parameter.
double optimizer_states(const Settings& settings);

/// Collective: between this process's first worker and the one beside it, while all other pairs
/// send too; without limit where there is none. Without `spare_cores` messages are copied on the
/// cores of the workers, which costs them time.
Link measured_link(Group& group, bool spare_cores);

/// All but the getters are collective. Numbers are those of each process; the leader's count.
class MeasuredCosts {
 public:
  /// Makes a network for each device of this process, and measures what does not depend on the
  /// number of images. `job` and `ranks` outlive it.
  MeasuredCosts(const TrainingJob& job, const Ranks& ranks);
  ~MeasuredCosts();
  MeasuredCosts(const MeasuredCosts&) = delete;
  MeasuredCosts& operator=(const MeasuredCosts&) = delete;

  /// Adds profiles of micro-batches of so many images.
  void measure(std::int64_t images);
  bool has(std::int64_t images) const;
  /// Gives back the networks' memory; nothing is measured any more. Not collective.
  void finish();
  /// Forecast of how long measure() takes; 0 before anything was measured.
  double seconds_for(std::int64_t images) const;

  /// Kinds of device: those of this process by type, in the order of --devices, then one device
  /// alone.
  std::vector<NodeCost> nodes_at(std::int64_t images) const;
  const PlanMachine& machine() const { return machine_; }
  /// Where nodes end; names.
  const Profile& profile() const { return together_.front(); }

 private:
  ProfileOptions options_for(std::size_t device, std::int64_t images) const;
  std::vector<Profile> profiles_of_all(std::int64_t images);
  void measure_links();
  void measure_all_reduce();
  void measure_optimizer();

  const TrainingJob& job_;
  Settings settings_;
  const Ranks& ranks_;
  std::vector<std::shared_ptr<Network>> networks_;
  std::vector<int> kinds_;         // of this process's devices
  std::vector<Profile> together_;  // by images measured
  std::vector<Profile> alone_;
  double last_s_ = 0;  // of the last measure()
  PlanMachine machine_;
};

}  // namespace convoy
