// Stands in for NCCL's header where the emulator's include path comes first.
#pragma once

#include "kernels/emulator/nccl_api.h"
