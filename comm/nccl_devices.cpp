#include "comm/nccl_devices.h"

namespace convoy {

bool has_nccl(DeviceType type) {
  if (type == DeviceType::emu) return true;
  return type == DeviceType::cuda && cuda::has_nccl();
}

std::unique_ptr<NcclCommunicator> make_nccl_communicator(HostCommunicator& group,
                                                         const Device& device,
                                                         const NcclOptions& options) {
  if (device.type == DeviceType::cuda) return cuda::make_nccl(group, device, options);
  if (device.type == DeviceType::emu) return emulator::make_nccl(group, device, options);
  CONVOY_FAIL(usage, "nccl: {} is no GPU, expected devices cuda:K or emu:K", to_string(device));
}

int nccl_version(DeviceType type) {
  return type == DeviceType::emu ? emulator::nccl_version() : cuda::nccl_version();
}

}  // namespace convoy
