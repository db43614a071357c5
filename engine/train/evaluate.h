// Evaluation over a whole set: every image once, none twice.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "engine/train/trainer.h"

namespace convoy {

/// What the settings say of a loader of images of `image_size`; `training` gives varied images in
/// shuffled order.
LoaderOptions loader_options(const Settings& settings, std::int64_t image_size, bool training);

/// The loader of `dataset` for `job`.
std::unique_ptr<Loader> make_loader(const TrainingJob& job, std::shared_ptr<const Dataset> dataset,
                                    bool training);

/// Loss (mean over images, without label smoothing) and top-1, top-5 of the validation set (NaN
/// where samples have no class). Absent if `stop` is requested meanwhile.
std::optional<EvalEvent> evaluate(
    const TrainingJob& job, StepRunner& runner, std::int64_t epoch, const StopRequest& stop,
    const std::function<void(std::int64_t done, std::int64_t of)>& progress);

}  // namespace convoy
