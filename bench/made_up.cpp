#include "bench/made_up.h"

#include <algorithm>
#include <numeric>

#include "engine/data/order.h"

namespace convoy {
namespace {

std::int64_t images_of(const std::vector<std::int64_t>& shares, const ReplicaRange& replicas) {
  const auto first = shares.begin() + replicas.first;
  return std::accumulate(first, first + replicas.count, std::int64_t{0});
}

std::vector<float> random_values(const char* name, std::int64_t count) {
  const std::vector<double> values = RandomStream(0, name).normal(count);
  return {values.begin(), values.end()};
}

void add_labels(HostBatch& batch, std::int64_t images, std::int64_t classes, bool one_hot) {
  for (std::int64_t i = 0; i < images; ++i) batch.labels.push_back(i % classes);
  if (!one_hot) return;
  batch.target_width = classes;
  batch.targets.assign(static_cast<std::size_t>(images * classes), 0);
  for (std::int64_t i = 0; i < images; ++i) {
    batch.targets[static_cast<std::size_t>(i * classes + i % classes)] = 1;
  }
}

}  // namespace

HostBatch made_up_batch(const Network& network, const std::vector<std::int64_t>& shares,
                        const Ranks& ranks, std::int64_t image_size, bool one_hot) {
  HostBatch batch;
  batch.shares = shares;
  batch.batch_images = std::accumulate(shares.begin(), shares.end(), std::int64_t{0});
  batch.image_replicas = ranks.image_replicas();
  batch.label_replicas = ranks.label_replicas();
  batch.set_starts();
  batch.images = images_of(shares, batch.image_replicas);
  batch.shape = network.takes_rows() ? Shape{batch.images, network.in()}
                                     : Shape{batch.images, network.in(), image_size, image_size};
  batch.x = random_values("bench/x", batch.shape.count());
  const std::int64_t labels = images_of(shares, batch.label_replicas);
  if (network.takes_rows()) {
    batch.target_width = network.out();
    batch.targets = random_values("bench/y", labels * network.out());
  } else {
    add_labels(batch, labels, network.out(), one_hot);
  }
  return batch;
}

}  // namespace convoy
