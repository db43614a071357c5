// Filters with rows of whole pairs of taps, for images whose pixels are taken by two.
#pragma once

#include "kernels/base/buffer.h"
#include "kernels/base/stream.h"
#include "kernels/cuda/conv2d_problem.h"

namespace convoy::CONVOY_GPU {

/// The filters `w` (k, r, s, 4) of f32 or bf16 as the filters of a paired `problem`, in the
/// stream's scratch memory.
ConstBuffer padded_filters(Stream& stream, const ConvProblem& problem, const FilterRows& rows,
                           ConstBuffer w);

}  // namespace convoy::CONVOY_GPU
