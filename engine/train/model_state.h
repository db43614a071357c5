// The state of a network, or of a part of it, on its way into files and hashes.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/io/named_array.h"
#include "engine/nn/module.h"

namespace convoy {

/// Copies of a module's state. `numerics` that names a value which is not finite.
std::vector<NamedArray> finite_state(const Module& module, std::int64_t step);

/// Copies of the gradients under their parameters' names; parameters without one are left out.
std::vector<NamedArray> gradient_arrays(const Module& module);

/// Bytes of a checkpoint's values: weights, `states` tensors of optimizer state each, buffers.
std::uint64_t state_bytes(const Module& module, std::size_t states);

}  // namespace convoy
