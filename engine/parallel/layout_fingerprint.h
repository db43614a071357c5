// What a private layout does to the elements of a shape, as a number that means the same in every
// process: layout ids are numbered by each process as it meets them.
#pragma once

#include <cstdint>

#include "engine/tensor/tensor.h"

namespace convoy {

/// Equal numbers: the elements lie in the same places. 0 for row-major. Found by moving numbered
/// elements into the layout, so it costs about as much as a few copies of the tensor; waits.
std::int64_t layout_fingerprint(const Tensor& tensor);

}  // namespace convoy
