// The reference backend, the oracle that other backends are held against: plain loops over float
// or double, all arithmetic in double, everything in kPlain. Its words are "clear" and "right".
#pragma once

#include "kernels/kernel_list.h"

namespace convoy::reference {

CONVOY_KERNEL_LIST(CONVOY_DECLARE_KERNEL)

}  // namespace convoy::reference
