// Stands in for CUDA's header of this name where the emulator's include path comes first.
#pragma once

#include "kernels/emulator/device_language.h"
#include "kernels/emulator/runtime_api.h"
