// The arithmetic of all-reduce: values of several ranks joined element by element, in the order in
// which they are given, with the same bits on every machine.
#pragma once

#include <cstdint>
#include <span>

#include "comm/communicator.h"

namespace convoy {

/// out[i] = sources[0][i] + sources[1][i] + ..., in that order; `mean` divides the sum by
/// `divisor`; `max` is NaN where any value is. Integers wrap; bf16 is added in float and rounded
/// once. `out` may be one of the sources. `copies` get the same values as `out`, in the same pass;
/// none of them may be a source.
void reduce(std::span<const void* const> sources, void* out, std::int64_t count, DType dtype,
            Reduction reduction, int divisor, std::span<void* const> copies = {});

}  // namespace convoy
