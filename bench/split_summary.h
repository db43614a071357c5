// The rows of `bench split`, and what follows from their times alone.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/train/observer.h"

namespace convoy {

/// One way to run the step.
struct SplitRow {
  std::string mode;                ///< single, model-parallel, pipeline, data-parallel
  std::int64_t split = 0;          ///< images in a micro-batch; the batch itself for the whole
  std::int64_t micro_batches = 1;  ///< of a replica
  int replicas = 1;
  int workers = 1;  ///< of a replica
  int stages = 1;
  std::string schedule;          ///< of several stages, else empty
  std::vector<std::string> cut;  ///< first layer of each later stage

  std::vector<double> seconds;  ///< of the measured steps
  double mean_s = 0;
  double std_s = 0;  ///< of the sample; 0 for a single step
  double median_s = 0;
  double images_per_s = 0;  ///< in the median step

  double speed_up = 0;                        ///< times the single device with the whole batch
  std::optional<double> speed_up_same_split;  ///< times the single device in such micro-batches

  // Of several stages: what its workers measured of themselves, over all measured steps.
  std::vector<double> shares;     ///< of each stage in the computing time of all
  std::optional<double> ceiling;  ///< simulated without transfers, against single in such parts
  std::optional<double> share_of_ceiling;  ///< speed_up_same_split / ceiling
  std::optional<double> bubble;            ///< share of the workers' time, as pipeline accounts say
  std::optional<double> bubble_predicted;  ///< by the simulator
  std::optional<double> transfer_share;  ///< of the workers' time, waiting for messages on the way
  std::optional<double> host_share;      ///< of the workers' time, neither computing nor waiting
};

/// A claim about splitting, and what this run says to it.
struct SplitVerdict {
  std::string claim;
  bool holds = false;
  double ratio = 0;                      ///< times as fast as `against`
  std::string row;                       ///< the one that the claim is about
  std::string against;                   ///< the row that it is measured against
  std::optional<double> transfer_share;  ///< of `row`
};

/// Fills in what its workers say of themselves: bubble, and shares of their time.
void add_account(SplitRow& row, const WorkersEvent& event);

/// "pipeline 12, 1f1b", "single 120".
std::string row_name(const SplitRow& row);

/// Fills in means, medians, rates and speed-ups. `usage` for rows without a measured step or a
/// single row of the whole batch.
void sum_up(std::vector<SplitRow>& rows, std::int64_t batch);

/// The claims for which there are rows: model parallel is slower than one device with the same
/// batch; pipelining is faster than any one device and than model parallel; and whether it is
/// faster than data parallelism.
std::vector<SplitVerdict> verdicts(const std::vector<SplitRow>& rows);

}  // namespace convoy
