#include "engine/nn/state.h"

#include "engine/io/hash.h"
#include "engine/io/safetensors.h"
#include "engine/io/weights.h"

namespace convoy {

std::vector<NamedArray> to_arrays(const NamedTensors& tensors) {
  std::vector<NamedArray> arrays;
  arrays.reserve(tensors.size());
  for (const auto& [name, tensor] : tensors) {
    arrays.push_back({name, tensor.dtype(), tensor.shape().extents(), tensor.to_bytes()});
  }
  return arrays;
}

NamedTensors to_tensors(const std::vector<NamedArray>& arrays) {
  NamedTensors tensors;
  for (const NamedArray& array : arrays) {
    tensors.emplace_back(array.name, Tensor::from_host(array.bytes.data(), Shape(array.shape),
                                                       {array.dtype, Device()}));
  }
  return tensors;
}

std::vector<std::string> load_weights(Module& module, const std::string& path) {
  std::vector<WantedEntry> wanted;
  for (const auto& [name, tensor] : module.state_dict()) {
    wanted.push_back({name, tensor.shape().extents()});
  }
  MatchedWeights matched = match_weights(wanted, read_safetensors(path));
  module.load_state_dict(to_tensors(matched.tensors));
  return matched.notes;
}

void save_weights(const Module& module, const std::string& path) {
  write_safetensors(path, to_arrays(module.state_dict()), {{"format", "pt"}});
}

std::string weights_hash(const Module& module) {
  return weights_hash(to_arrays(module.state_dict()));
}

void save(const Module& module, const std::string& path) {
  save_weights(module, path);
}

void load(Module& module, const std::string& path) {
  load_weights(module, path);
}

}  // namespace convoy
