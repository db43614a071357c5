// Convolution: the first kernel set that takes the operands.
#include "kernels/cuda/bias_gradient.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/mma.h"
#include "kernels/cuda/naive.h"
#include "kernels/cuda/precision.h"
#include "kernels/cuda/simt.h"

namespace convoy::CONVOY_GPU {

void conv2d_forward(Stream& stream, const Conv2dShape& shape, ConstBuffer x, ConstBuffer w,
                    ConstBuffer b, Buffer y) {
  constexpr const char* kName = "conv2d_forward";
  require_parameter(kName, dtype_of_all(kName, {x, w, y}), b);
  if (mma_conv2d_forward(stream, shape, x, w, b, y)) return;
  if (simt_conv2d_forward(stream, shape, x, w, b, y)) return;
  naive_conv2d_forward(stream, shape, x, w, b, y);
}

void conv2d_input_gradient(Stream& stream, const Conv2dShape& shape, ConstBuffer dy, ConstBuffer w,
                           Buffer dx) {
  dtype_of_all("conv2d_input_gradient", {dy, w, dx});
  if (mma_conv2d_input_gradient(stream, shape, dy, w, dx)) return;
  if (simt_conv2d_input_gradient(stream, shape, dy, w, dx)) return;
  naive_conv2d_input_gradient(stream, shape, dy, w, dx);
}

void conv2d_weight_gradient(Stream& stream, const Conv2dShape& shape, ConstBuffer x, ConstBuffer dy,
                            Buffer dw, Buffer db) {
  constexpr const char* kName = "conv2d_weight_gradient";
  const DType dtype = dtype_of_all(kName, {x, dy});
  require_parameter(kName, dtype, dw);
  require_parameter(kName, dtype, db);
  if (!mma_conv2d_weight_gradient(stream, shape, x, dy, dw) &&
      !simt_conv2d_weight_gradient(stream, shape, x, dy, dw)) {
    naive_conv2d_weight_gradient(stream, shape, x, dy, dw);
  }
  if (db) bias_gradient(stream, shape.y(), dy, db);
}

}  // namespace convoy::CONVOY_GPU
