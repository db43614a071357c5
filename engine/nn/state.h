// Between tensors and the named arrays of files.
#pragma once

#include <string>
#include <vector>

#include "engine/io/named_array.h"
#include "engine/nn/module.h"

namespace convoy {

/// Row-major copies in host memory. Waits for the devices.
std::vector<NamedArray> to_arrays(const NamedTensors& tensors);

/// Tensors on cpu:0 with the arrays' values and types.
NamedTensors to_tensors(const std::vector<NamedArray>& arrays);

/// Loads weights with torchvision's names from a safetensors file, whole or not at all. Returns
/// lines to print: how many entries, what was stripped. `checkpoint` names what does not fit.
std::vector<std::string> load_weights(Module& module, const std::string& path);

/// Writes the module's state_dict to a safetensors file, whole or not at all.
void save_weights(const Module& module, const std::string& path);

/// The hash of parameters and running statistics that the `end` line shows.
std::string weights_hash(const Module& module);

}  // namespace convoy
