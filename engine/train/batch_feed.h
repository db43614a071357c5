// A window's batches that are there already: for measurements and tests.
#pragma once

#include <utility>
#include <vector>

#include "engine/train/step_runner.h"

namespace convoy {

class ReadyBatches : public BatchFeed {
 public:
  explicit ReadyBatches(std::vector<HostBatch> batches) : batches_(std::move(batches)) {}

  const HostBatch& at(std::int64_t batch) override {
    return batches_.at(static_cast<std::size_t>(batch));
  }
  void done(std::int64_t) override {}

 private:
  const std::vector<HostBatch> batches_;
};

}  // namespace convoy
