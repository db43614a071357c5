// What kernels over many buffers ask of them, when they are called.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/base/buffer.h"
#include "kernels/cuda/platform.h"
#include "kernels/shapes.h"

namespace convoy::CONVOY_GPU {

/// `usage` unless each buffer is f32, f64 or bf16; `internal` unless result is f64 and there are as
/// many counts as buffers.
void check_squares(const std::vector<ConstBuffer>& x, const std::vector<std::int64_t>& counts,
                   ConstBuffer result);

/// `usage` unless each slot's buffers are all f32 or all f64; `internal` where a state that the
/// optimizer needs is left out.
void check_slots(const char* kernel, const std::vector<OptimizerSlot>& slots, bool needs_state1,
                 bool needs_state2);

}  // namespace convoy::CONVOY_GPU
