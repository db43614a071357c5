#include "engine/train/micro_batch_plan.h"

#include <algorithm>

namespace convoy {
namespace {

// Those of one batch. No one is empty on all replicas.
std::vector<MicroBatch> parts_of(std::int64_t batch, const std::vector<std::int64_t>& shares,
                                 const MicroBatchRule& rule) {
  std::vector<MicroBatch> parts;
  for (std::size_t replica = 0; replica < shares.size(); ++replica) {
    const std::vector<std::int64_t> images = split_batch(shares[replica], rule);
    while (parts.size() < images.size()) {
      parts.push_back({batch, shares, std::vector<std::int64_t>(shares.size(), 0)});
    }
    std::int64_t begin = 0;
    for (std::size_t i = 0; i < images.size(); ++i) {
      parts[i].begins[replica] = begin;
      parts[i].images[replica] = images[i];
      begin += images[i];
    }
  }
  return parts;
}

}  // namespace

MicroBatchPlan::MicroBatchPlan(const std::vector<std::vector<std::int64_t>>& shares,
                               const Division& division)
    : together_(division.together) {
  for (std::size_t batch = 0; batch < shares.size(); ++batch) {
    for (MicroBatch& part :
         parts_of(static_cast<std::int64_t>(batch), shares[batch], division.rule)) {
      micro_batches_.push_back(std::move(part));
    }
  }
}

bool MicroBatchPlan::ends_batch(int id, int replica) const {
  for (int next = id + 1; next < count() && at(next).batch == at(id).batch; ++next) {
    if (runs(next, replica)) return false;
  }
  return runs(id, replica);
}

int MicroBatchPlan::last(int replica) const {
  for (int id = count() - 1; id >= 0; --id) {
    if (runs(id, replica)) return id;
  }
  return -1;
}

std::vector<std::int64_t> MicroBatchPlan::images_of(int replica) const {
  std::vector<std::int64_t> all;
  for (int id = 0; id < count(); ++id) all.push_back(images(id, replica));
  return all;
}

}  // namespace convoy
