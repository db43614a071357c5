// Batch norm needs more than one value per channel: known from shapes alone, before the first step.
#include "engine/nn/layers.h"
#include "engine/train/trainer.h"
#include "kernels/base/error.h"

namespace convoy {

namespace {

std::string flags_of_micro_batches(const Settings& settings) {
  if (settings.micro_batches) return "fewer --micro-batches or another --batch";
  if (settings.micro_batch_size) return "another --micro-batch-size or --batch";
  return "another --batch";
}

}  // namespace

void check_batch_norm(const Network& network, const Settings& settings, std::int64_t images,
                      std::int64_t image_size) {
  const std::string& mode = settings.bn;
  if (mode == "frozen") return;
  const bool synced = mode == "sync" || mode == "deferred+sync";
  const std::vector<Shape> outputs = network.output_shapes(images, image_size);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (!dynamic_cast<BatchNorm2d*>(network.layers()[i].module.get())) continue;
    const Shape& y = outputs[i];
    CONVOY_CHECK(y.count() > y[1],
                 "batch norm {}: 1 value per channel: a micro-batch of {} image{} and maps of "
                 "{}x{}; take {}, a larger --image-size{}",
                 network.layers()[i].name, images, synced ? " over all replicas" : "", y[2], y[3],
                 flags_of_micro_batches(settings),
                 synced ? "" : ", or --bn sync over several replicas");
  }
}

std::int64_t least_micro_batch(const Network& network, const std::string& mode,
                               std::int64_t image_size) {
  if (mode == "frozen") return 1;
  const std::vector<Shape> outputs = network.output_shapes(1, image_size);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const bool norm = dynamic_cast<BatchNorm2d*>(network.layers()[i].module.get()) != nullptr;
    if (norm && outputs[i].count() == outputs[i][1]) return 2;
  }
  return 1;
}

}  // namespace convoy
