// CIFAR-10's binary files: records of 3073 bytes, a label and three planes of 32 x 32 pixels.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/data/dataset.h"
#include "engine/data/file.h"

namespace convoy {

inline constexpr Normalisation kCifarNormalisation = {{0.4914f, 0.4822f, 0.4465f},
                                                      {0.2470f, 0.2435f, 0.2616f}};

/// The records of a file held in memory, checked; `name` goes into errors.
std::int64_t check_cifar(const Bytes& bytes, const std::string& name);

/// The files data_batch_1.bin to data_batch_5.bin (train) or test_batch.bin of `folder`, or of its
/// subfolder cifar-10-batches-bin.
std::shared_ptr<const Dataset> open_cifar(const std::string& folder, bool train);

}  // namespace convoy
