#include "engine/nn/state.h"

#include <map>

#include "engine/io/hash.h"
#include "engine/io/safetensors.h"

namespace convoy {
namespace {

Tensor to_tensor(const NamedArray& array, const Device& device) {
  return Tensor::from_host(array.bytes.data(), Shape(array.shape), {array.dtype, device});
}

NamedTensors tensors_of(const Module& module) {
  NamedTensors tensors = module.named_parameters();
  for (auto& entry : module.named_buffers()) tensors.push_back(entry);
  return tensors;
}

// What a file must hold.
std::vector<WantedEntry> wanted_entries(const Module& module) {
  std::vector<WantedEntry> wanted;
  for (const auto& [name, tensor] : tensors_of(module)) {
    wanted.push_back({name, tensor.shape().extents()});
  }
  for (const auto& [name, counter] : module.named_counters()) wanted.push_back({name, {}});
  return wanted;
}

// Each tensor beside the module's own of that name; counters, which are on none, beside the first.
NamedTensors to_tensors_beside(const Module& module, const std::vector<NamedArray>& arrays) {
  const NamedTensors own = tensors_of(module);
  std::map<std::string, Device> devices;
  for (const auto& [name, tensor] : own) devices[name] = tensor.device();
  NamedTensors tensors;
  for (const NamedArray& array : arrays) {
    const auto found = devices.find(array.name);
    const Device device = found == devices.end() ? own.at(0).second.device() : found->second;
    tensors.emplace_back(array.name, to_tensor(array, device));
  }
  return tensors;
}

}  // namespace

std::vector<NamedArray> to_arrays(const NamedTensors& tensors) {
  std::vector<NamedArray> arrays;
  arrays.reserve(tensors.size());
  for (const auto& [name, tensor] : tensors) {
    arrays.push_back({name, tensor.dtype(), tensor.shape().extents(), tensor.to_bytes()});
  }
  return arrays;
}

NamedTensors to_tensors(const std::vector<NamedArray>& arrays, const Device& device) {
  NamedTensors tensors;
  for (const NamedArray& array : arrays) tensors.emplace_back(array.name, to_tensor(array, device));
  return tensors;
}

std::vector<std::string> load_weights(Module& module, const std::string& path,
                                      const std::optional<Device>& map_location) {
  const MatchedWeights matched = read_weights(module, path);
  module.load_state_dict(map_location ? to_tensors(matched.tensors, *map_location)
                                      : to_tensors_beside(module, matched.tensors));
  return matched.notes;
}

MatchedWeights read_weights(const Module& module, const std::string& path) {
  return match_weights(wanted_entries(module), read_safetensors(path));
}

void save_weights(const Module& module, const std::string& path) {
  save(module.state_dict(), path);
}

std::string weights_hash(const Module& module) {
  return weights_hash(to_arrays(module.state_dict()));
}

void save(const Module& module, const std::string& path) {
  save_weights(module, path);
}

void save(const NamedTensors& state, const std::string& path) {
  write_safetensors(path, to_arrays(state), {{"format", "pt"}});
}

void load(Module& module, const std::string& path, const std::optional<Device>& map_location) {
  load_weights(module, path, map_location);
}

NamedTensors load(const std::string& path, const Device& map_location) {
  return to_tensors(read_safetensors(path).tensors, map_location);
}

}  // namespace convoy
