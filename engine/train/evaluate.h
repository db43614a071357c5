// Evaluation over a whole set: every image once, none twice.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "engine/train/trainer.h"

namespace convoy {

/// What the settings say of a loader of images of `image_size`, of all replicas; `training` gives
/// varied images in shuffled order.
LoaderOptions loader_options(const Settings& settings, std::int64_t image_size, bool training);

/// The loader of `dataset` for this process's replicas in `job`.
std::unique_ptr<Loader> make_loader(const TrainingJob& job, std::shared_ptr<const Dataset> dataset,
                                    bool training);

/// Loss (mean over images, without label smoothing) and top-1, top-5 of the validation set (NaN
/// where samples have no class). `observers` hear of the progress and of images passed over. Absent
/// if `stopping()`, asked before each batch, says so. With several processes all make this call and
/// get the same.
std::optional<EvalEvent> evaluate(const TrainingJob& job, StepRunner& runner, std::int64_t epoch,
                                  const std::function<bool()>& stopping,
                                  const std::vector<Observer*>& observers);

/// Tells `observers` what images were passed over, out of `images`; nothing if there are none.
void tell_skipped(const std::vector<SkippedImage>& skipped, std::int64_t images,
                  const std::vector<Observer*>& observers);

}  // namespace convoy
