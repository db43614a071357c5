// A network's profile on devices that are not here: each layer takes as long as its arithmetic or
// its memory traffic, whichever is slower, at the rates that a description gives.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/parallel/pipeline/profile.h"

namespace convoy {

/// What kernels of a device reach, not what its maker promises.
struct DeviceRates {
  std::string name;
  double flops = 0;         ///< FLOP/s of convolutions and products; a multiply-add counts two
  double bytes_per_s = 0;   ///< of memory
  double memory_bytes = 0;  ///< 0: not limited
  double launch_s = 0;      ///< of each kernel
};

/// The profile of `images` images on each of `devices`, one kind each. Kept tensors are those that
/// the layers save for backward.
Profile roofline_profile(const Network& network, const std::vector<DeviceRates>& devices,
                         std::int64_t images, std::int64_t image_size, double states,
                         DType dtype = DType::f32);

/// Seconds that the optimizer takes for a byte of parameters: it reads weight, gradient and state
/// and writes weight and state.
double step_seconds_per_byte(const DeviceRates& device, double states);

}  // namespace convoy
