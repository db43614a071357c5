#include "engine/parallel/data_parallel.h"

#include <algorithm>
#include <cstdlib>

#include "engine/nn/layers.h"
#include "engine/ops/ops.h"
#include "engine/parallel/replica.h"
#include "kernels/base/context.h"
#include "kernels/base/error.h"

namespace convoy {
namespace {

// Devices 0, 1, ... of the kind that the module is on. Those of the cpu get the cores' shares.
std::vector<Device> all_devices(const Module& module) {
  const NamedTensors parameters = module.named_parameters();
  const Device home = parameters.empty() ? Device() : parameters.front().second.device();
  std::vector<Device> devices;
  for (int i = 0; i < device_count(home.type); ++i) devices.emplace_back(home.type, i);
  if (home.type == DeviceType::cpu && !std::getenv("OMP_NUM_THREADS")) {
    for (const Device& device : devices) context(device).set_threads(1);
  }
  return devices;
}

std::int64_t images_of(const std::vector<Tensor>& inputs) {
  CONVOY_CHECK(!inputs.empty(), "DataParallel: no input given");
  for (const Tensor& input : inputs) {
    CONVOY_CHECK(
        input.defined() && input.shape().rank() >= 1 && input.size(0) == inputs[0].size(0),
        "DataParallel: an input is {}, the first is {}: expected batches of as many images",
        describe(input), describe(inputs[0]));
  }
  return inputs[0].size(0);
}

// Where each device's images begin, and where the last ones end: parts that differ by at most one,
// larger ones first, and none that is empty unless there are no images.
std::vector<std::int64_t> share_out(std::int64_t images, std::size_t devices) {
  const std::int64_t parts =
      std::clamp<std::int64_t>(images, 1, static_cast<std::int64_t>(devices));
  std::vector<std::int64_t> ends{0};
  for (std::int64_t i = 0; i < parts; ++i) {
    ends.push_back(ends.back() + images / parts + (i < images % parts ? 1 : 0));
  }
  return ends;
}

// Images begin..end-1 of all inputs on `device`.
std::vector<Tensor> part_of(const std::vector<Tensor>& inputs, std::int64_t begin, std::int64_t end,
                            const Device& device) {
  std::vector<Tensor> parts;
  for (const Tensor& input : inputs) parts.push_back(input.slice(begin, end).to(device));
  return parts;
}

}  // namespace

DataParallel::DataParallel(std::shared_ptr<Module> module, std::vector<Device> devices) {
  CONVOY_CHECK(module, "DataParallel: no module given");
  module_ = register_module("", std::move(module));
  devices_ = devices.empty() ? all_devices(*module_) : std::move(devices);
  check_devices();
  check_module();
}

void DataParallel::check_devices() const {
  for (auto device = devices_.begin(); device != devices_.end(); ++device) {
    CONVOY_CHECK(std::find(devices_.begin(), device, *device) == device,
                 "DataParallel: {} is named twice", to_string(*device));
    context(*device);  // `usage` if there is none
  }
}

void DataParallel::check_module() const {
  NamedTensors state = module_->named_parameters();
  for (auto& entry : module_->named_buffers()) state.push_back(std::move(entry));
  for (const auto& [name, tensor] : state) {
    if (!is_floating(tensor.dtype())) continue;  // to() moves floating ones only
    CONVOY_CHECK(tensor.device() == devices_.front(),
                 "DataParallel: {} is on {}, the first device is {}: move the module with .to()",
                 name, to_string(tensor.device()), to_string(devices_.front()));
  }
  module_->for_each([](const std::string& name, Module& each) {
    const auto* norm = dynamic_cast<const BatchNorm2d*>(&each);
    CONVOY_CHECK(!norm || !norm->group(),
                 "DataParallel: {} normalises over a group of workers, which have a module each: "
                 "use DistributedDataParallel",
                 name);
  });
}

Tensor DataParallel::forward_all(const std::vector<Tensor>& inputs) {
  const std::int64_t images = images_of(inputs);
  check_module();
  const std::vector<std::int64_t> ends = share_out(images, devices_.size());
  const std::size_t used = ends.size() - 1;
  std::vector<std::vector<Tensor>> parts;
  std::vector<Replica> replicas;
  for (std::size_t i = 0; i < used; ++i) {
    parts.push_back(part_of(inputs, ends[i], ends[i + 1], devices_[i]));
    if (i > 0) replicas.emplace_back(*module_, devices_[i]);
  }
  // The first device comes last: what it writes to buffers then stays only if all have come so far.
  std::vector<Tensor> outputs(used);
  for (std::size_t i = 1; i < used; ++i) outputs[i] = replicas[i - 1].forward(parts[i]);
  outputs[0] = module_->forward_all(parts[0]);
  // Only now that all devices have their work may the first one wait for the others.
  for (Tensor& output : outputs) output = output.to(devices_[0]);
  return used == 1 ? outputs[0] : cat(outputs);
}

}  // namespace convoy
