// The device that these tests are compiled for: an emulated GPU, or a real one.
#pragma once

#include <string_view>

#include "kernels/cuda/platform.h"

namespace convoy::testing {

#define CONVOY_TEXT_OF(macro) #macro
#define CONVOY_TEXT(macro) CONVOY_TEXT_OF(macro)
inline constexpr bool kOnEmulator = std::string_view(CONVOY_TEXT(CONVOY_GPU)) == "emulator";
#undef CONVOY_TEXT
#undef CONVOY_TEXT_OF
inline constexpr const char* kGpuName = kOnEmulator ? "emu:0" : "cuda:0";

}  // namespace convoy::testing
