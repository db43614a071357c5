#include "kernels/backends.h"

#include "kernels/base/error.h"
#include "kernels/base/host_context.h"

namespace convoy {

std::unique_ptr<DeviceContext> open_device(const Device& device) {
  switch (device.type) {
    case DeviceType::cpu:
      return cpu::open(device.index);
    case DeviceType::ref:
      return reference::open(device.index);
    case DeviceType::cuda:
    case DeviceType::emu:
      break;
  }
  CONVOY_FAIL(usage, "device: {} is not in this build; it has cpu:K and ref:K", to_string(device));
}

int device_count(DeviceType type) {
  return type == DeviceType::cpu || type == DeviceType::ref ? allowed_cores() : 0;
}

}  // namespace convoy
