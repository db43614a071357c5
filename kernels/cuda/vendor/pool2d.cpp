// Pooling by cuDNN.
#include "kernels/cuda/gpu_stream.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/vendor/kernels.h"
#include "kernels/cuda/vendor/vendor.h"

namespace convoy::cuda::vendor {
namespace {

cudnnPoolingMode_t mean_mode(const Pool2dShape& shape) {
  return shape.count_padding ? CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING
                             : CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING;
}

void forward(Stream& stream, const char* kernel, const Pool2dShape& shape, cudnnPoolingMode_t mode,
             ConstBuffer x, Buffer y) {
  const Lock device(stream, kernel);
  const PoolingDescriptor pooling = pooling_descriptor(shape, mode);
  const TensorDescriptor from = tensor_descriptor(shape.x(), x.layout, x.dtype);
  const TensorDescriptor to = tensor_descriptor(shape.y(), y.layout, y.dtype);
  const float one = 1, zero = 0;
  check(calls().cudnnPoolingForward(device->cudnn, pooling.get(), &one, from.get(), x.data, &zero,
                                    to.get(), y.data),
        kernel);
}

}  // namespace

void max_pool2d_forward(Stream& stream, const Pool2dShape& shape, ConstBuffer x, Buffer y,
                        Buffer index) {
  if (index || x.dtype == DType::f64) {
    return cuda::max_pool2d_forward(stream, shape, x, y, index);
  }
  forward(stream, "max_pool2d_forward", shape, CUDNN_POOLING_MAX_DETERMINISTIC, x, y);
}

void avg_pool2d_forward(Stream& stream, const Pool2dShape& shape, ConstBuffer x, Buffer y) {
  if (x.dtype == DType::f64) return cuda::avg_pool2d_forward(stream, shape, x, y);
  forward(stream, "avg_pool2d_forward", shape, mean_mode(shape), x, y);
}

void avg_pool2d_backward(Stream& stream, const Pool2dShape& shape, ConstBuffer dy, Buffer dx) {
  constexpr const char* kName = "avg_pool2d_backward";
  if (dy.dtype == DType::f64) return cuda::avg_pool2d_backward(stream, shape, dy, dx);
  const Lock device(stream, kName);
  const PoolingDescriptor pooling = pooling_descriptor(shape, mean_mode(shape));
  const TensorDescriptor from = tensor_descriptor(shape.y(), dy.layout, dy.dtype);
  const TensorDescriptor to = tensor_descriptor(shape.x(), dx.layout, dx.dtype);
  const float one = 1, zero = 0;
  // Of a mean neither x nor y is read.
  check(calls().cudnnPoolingBackward(device->cudnn, pooling.get(), &one, from.get(), dy.data,
                                     from.get(), dy.data, to.get(), dx.data, &zero, to.get(),
                                     dx.data),
        kName);
}

}  // namespace convoy::cuda::vendor
