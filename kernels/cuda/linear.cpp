// Linear: the first kernel set that takes the operands.
#include "kernels/cuda/bias_gradient.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/mma.h"
#include "kernels/cuda/naive.h"
#include "kernels/cuda/operands.h"
#include "kernels/cuda/precision.h"
#include "kernels/cuda/simt.h"

namespace convoy::CONVOY_GPU {
void linear_forward(Stream& stream, const LinearShape& shape, ConstBuffer x, ConstBuffer w,
                    ConstBuffer b, Buffer y) {
  constexpr const char* kName = "linear_forward";
  check_plain(kName, {x, w, b, y});
  require_parameter(kName, dtype_of_all(kName, {x, w, y}), b);
  if (mma_linear_forward(stream, shape, x, w, b, y)) return;
  if (simt_linear_forward(stream, shape, x, w, b, y)) return;
  naive_linear_forward(stream, shape, x, w, b, y);
}

void linear_input_gradient(Stream& stream, const LinearShape& shape, ConstBuffer dy, ConstBuffer w,
                           Buffer dx) {
  constexpr const char* kName = "linear_input_gradient";
  check_plain(kName, {dy, w, dx});
  dtype_of_all(kName, {dy, w, dx});
  if (mma_linear_input_gradient(stream, shape, dy, w, dx)) return;
  if (simt_linear_input_gradient(stream, shape, dy, w, dx)) return;
  naive_linear_input_gradient(stream, shape, dy, w, dx);
}

void linear_weight_gradient(Stream& stream, const LinearShape& shape, ConstBuffer x, ConstBuffer dy,
                            Buffer dw, Buffer db) {
  constexpr const char* kName = "linear_weight_gradient";
  check_plain(kName, {x, dy, dw, db});
  const DType dtype = dtype_of_all(kName, {x, dy});
  require_parameter(kName, dtype, dw);
  require_parameter(kName, dtype, db);
  if (!mma_linear_weight_gradient(stream, shape, x, dy, dw) &&
      !simt_linear_weight_gradient(stream, shape, x, dy, dw)) {
    naive_linear_weight_gradient(stream, shape, x, dy, dw);
  }
  if (db) bias_gradient(stream, {shape.rows, shape.out, 1, 1}, dy, db);
}

}  // namespace convoy::CONVOY_GPU
