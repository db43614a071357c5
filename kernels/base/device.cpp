#include "kernels/base/device.h"

#include <charconv>

#include "kernels/base/error.h"

namespace convoy {

const char* name(DeviceType type) {
  switch (type) {
    case DeviceType::cpu:
      return "cpu";
    case DeviceType::ref:
      return "ref";
    case DeviceType::cuda:
      return "cuda";
    case DeviceType::emu:
      return "emu";
  }
  return "?";
}

Device::Device(std::string_view text) {
  const std::size_t colon = text.find(':');
  const std::string_view kind = text.substr(0, colon);
  bool known = false;
  for (DeviceType candidate :
       {DeviceType::cpu, DeviceType::ref, DeviceType::cuda, DeviceType::emu}) {
    if (kind == name(candidate)) {
      type = candidate;
      known = true;
    }
  }
  bool number_ok = true;
  if (colon != std::string_view::npos) {
    const std::string_view digits = text.substr(colon + 1);
    auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
    number_ok =
        error == std::errc() && end == digits.data() + digits.size() && index >= 0 && index < 4096;
  }
  CONVOY_CHECK(known && number_ok, "device: '{}' is none; expected cpu:K, ref:K, cuda:K or emu:K",
               text);
}

std::string to_string(const Device& device) {
  return fmt::format("{}:{}", name(device.type), device.index);
}

}  // namespace convoy
