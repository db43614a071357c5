// Names of devices: "cpu:0", "cuda:1", "emu:0", "ref:0". What a device can do is in context.h.
#pragma once

#include <compare>
#include <string>
#include <string_view>

namespace convoy {

/// cpu: a group of this process's cores; ref: plain loops, the oracle; cuda: a GPU; emu: a CUDA
/// device emulated on the host.
enum class DeviceType { cpu, ref, cuda, emu };

/// "cpu", "ref", "cuda", "emu".
const char* name(DeviceType type);

/// Names one device of this process.
struct Device {
  DeviceType type = DeviceType::cpu;
  int index = 0;

  Device() = default;
  Device(DeviceType device_type, int device_index) : type(device_type), index(device_index) {}
  /// Reads "cpu:1" or "cpu" (index 0); `usage` on anything else.
  Device(std::string_view text);
  Device(const char* text) : Device(std::string_view(text)) {}
  Device(const std::string& text) : Device(std::string_view(text)) {}

  friend auto operator<=>(const Device&, const Device&) = default;
};

/// Whether its memory is a GPU's, real or emulated, and not the host's.
inline bool is_gpu(const Device& device) {
  return device.type == DeviceType::cuda || device.type == DeviceType::emu;
}

/// "cpu:1".
std::string to_string(const Device& device);

}  // namespace convoy
