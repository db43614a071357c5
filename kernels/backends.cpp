#include "kernels/backends.h"

#include <algorithm>

#include "kernels/base/cores.h"
#include "kernels/base/error.h"

namespace convoy {

std::unique_ptr<DeviceContext> open_device(const Device& device) {
  switch (device.type) {
    case DeviceType::cpu:
      return cpu::open(device.index);
    case DeviceType::ref:
      return reference::open(device.index);
    case DeviceType::cuda:
      return cuda::open(device.index);
    case DeviceType::emu:
      return emulator::open(device.index);
  }
  CONVOY_FAIL(internal, "device: {} has no backend", to_string(device));
}

void choose_kernels(const Device& device, KernelChoice choice) {
  CONVOY_CHECK(choice == KernelChoice::own || device.type == DeviceType::cuda,
               "{}: no vendor's kernels here, which cuda:K has", to_string(device));
  if (device.type == DeviceType::cuda) cuda::choose_kernels(device, choice);
}

int device_count(DeviceType type) {
  switch (type) {
    case DeviceType::cpu:
    case DeviceType::ref:
      return allowed_cores();
    case DeviceType::cuda:
      return cuda::count();
    case DeviceType::emu:
      return std::min(emulator::count(), allowed_cores());
  }
  return 0;
}

}  // namespace convoy
