// What the vendor's libraries compute behind the seam of kernels. Operands as there; where a
// library lacks a case, our own kernel takes it:
//   convolution: cuDNN; bf16 weight gradients come in bf16 and are widened. Biases' gradients: own.
//   linear: cuBLASLt.
//   batch norm: f32 and bf16 by cuDNN, whose gradient is of the batch it sees: with statistics of a
//     larger group, and with frozen ones, own. Masks are not kept.
//   pooling: means, and maxima without places, by cuDNN. It has no places of maxima: own.
//   all else: own.
#pragma once

#include "kernels/cuda/platform.h"
#include "kernels/kernel_list.h"

namespace convoy::cuda::vendor {

CONVOY_KERNEL_LIST(CONVOY_DECLARE_KERNEL)

}  // namespace convoy::cuda::vendor
