// Which worker does what: replicas of the network, each over a row of pipeline workers, each with
// one stage or, interleaved, several.
//
//     rank     = replica * P + position           P: workers a replica
//     position = stage % P                        stages: P * stages_per_worker
#pragma once

#include <string>
#include <vector>

#include "engine/parallel/pipeline/instruction.h"
#include "engine/train/settings.h"

namespace convoy {

struct Layout {
  int replicas = 1;
  int workers_per_replica = 1;  ///< P
  int stages_per_worker = 1;    ///< more than 1 for `interleaved` alone

  int stages() const { return workers_per_replica * stages_per_worker; }
  int world() const { return replicas * workers_per_replica; }
  int replica_of(int rank) const { return rank / workers_per_replica; }
  int position_of(int rank) const { return rank % workers_per_replica; }
  int rank_of(int replica, int position) const { return replica * workers_per_replica + position; }
  /// Ascending.
  std::vector<int> stages_of(int rank) const;
  bool holds_first_stage(int rank) const { return position_of(rank) == 0; }
  bool holds_last_stage(int rank) const { return position_of(rank) == workers_per_replica - 1; }

  friend bool operator==(const Layout&, const Layout&) = default;
};

/// The layout of `workers` workers by --stages (a number), --replicas, --schedule (a file is read)
/// and --stages-per-worker; what is left open follows from the workers. `usage` with all numbers
/// where they do not fit.
Layout layout_of(const Settings& settings, int workers);

/// The table of --schedule FILE. `usage` if it cannot be read or is none.
Schedule read_schedule_file(const std::string& path);
/// Whether --schedule names a file, not a known schedule.
bool schedule_is_file(const Settings& settings);

/// "2 replicas x 2 stages".
std::string describe(const Layout& layout);

}  // namespace convoy
