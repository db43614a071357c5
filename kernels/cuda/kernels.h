// The kernels of this backend, declared from the list.
#pragma once

#include "kernels/cuda/platform.h"
#include "kernels/kernel_list.h"

namespace convoy::CONVOY_GPU {

CONVOY_KERNEL_LIST(CONVOY_DECLARE_KERNEL)

}  // namespace convoy::CONVOY_GPU
