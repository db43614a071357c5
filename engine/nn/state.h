// Between tensors and the named arrays of files: weights are saved and loaded as safetensors files
// that PyTorch's users can read and write.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/io/named_array.h"
#include "engine/io/weights.h"
#include "engine/nn/module.h"

namespace convoy {

/// Row-major copies in host memory. Waits for the devices.
std::vector<NamedArray> to_arrays(const NamedTensors& tensors);

/// Tensors on `device` with the arrays' values and types.
NamedTensors to_tensors(const std::vector<NamedArray>& arrays, const Device& device = {});

/// Loads weights with torchvision's names from a safetensors file, whole or not at all. Returns
/// lines to print: how many entries, what was stripped. `checkpoint` names what does not fit. The
/// file's tensors are made on `map_location`, where left out each beside the module's own; the
/// module stays where it is, and no other device is touched.
std::vector<std::string> load_weights(Module& module, const std::string& path,
                                      const std::optional<Device>& map_location = {});

/// What load_weights would load, and its lines, without touching the module: for networks that lie
/// in several processes.
MatchedWeights read_weights(const Module& module, const std::string& path);

/// Writes the module's state_dict to a safetensors file, whole or not at all.
void save_weights(const Module& module, const std::string& path);

/// The hash of parameters and running statistics that the `end` line shows.
std::string weights_hash(const Module& module);

/// torch.save(module.state_dict(), path): whole or not at all.
void save(const Module& module, const std::string& path);
/// The same for any named tensors: the state of an optimizer, say.
void save(const NamedTensors& state, const std::string& path);
/// module.load_state_dict(torch.load(path, map_location)); see load_weights.
void load(Module& module, const std::string& path, const std::optional<Device>& map_location = {});
/// torch.load(path, map_location): the file's tensors on that device.
NamedTensors load(const std::string& path, const Device& map_location = {});

}  // namespace convoy
