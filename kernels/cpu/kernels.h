// The kernels of the cpu backend, declared from the list.
#pragma once

#include "kernels/kernel_list.h"

namespace convoy::cpu {

CONVOY_KERNEL_LIST(CONVOY_DECLARE_KERNEL)

}  // namespace convoy::cpu
