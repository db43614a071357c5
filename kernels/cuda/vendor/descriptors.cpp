#include "kernels/cuda/vendor/descriptors.h"

#include "kernels/base/error.h"
#include "kernels/cuda/layout.h"
#include "kernels/cuda/vendor/vendor.h"

namespace convoy::cuda::vendor {
namespace {

constexpr const char* kWhat = "a descriptor";

int small(std::int64_t extent) {
  return static_cast<int>(extent);
}

}  // namespace

template <class Raw>
Descriptor<Raw>::Descriptor(Create create, Destroy destroy) : destroy_(destroy) {
  check(create(&raw_), kWhat);
}

cudnnDataType_t data_type(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return CUDNN_DATA_FLOAT;
    case DType::f64:
      return CUDNN_DATA_DOUBLE;
    case DType::bf16:
      return CUDNN_DATA_BFLOAT16;
    default:
      CONVOY_FAIL(usage, "--kernels vendor: cuDNN is not asked for {}", name(dtype));
  }
}

cudnnTensorFormat_t format(LayoutId layout) {
  return layout == kPlain ? CUDNN_TENSOR_NCHW : CUDNN_TENSOR_NHWC;
}

TensorDescriptor tensor_descriptor(const Shape& shape, LayoutId layout, DType dtype) {
  TensorDescriptor made(calls().cudnnCreateTensorDescriptor, calls().cudnnDestroyTensorDescriptor);
  check(calls().cudnnSetTensor4dDescriptor(
            made.get(), format(layout), data_type(dtype), small(shape[0]),
            small(stored_channels(layout, shape[1])), small(shape[2]), small(shape[3])),
        kWhat);
  return made;
}

FilterDescriptor filter_descriptor(const Shape& shape, LayoutId layout, DType dtype) {
  FilterDescriptor made(calls().cudnnCreateFilterDescriptor, calls().cudnnDestroyFilterDescriptor);
  check(calls().cudnnSetFilter4dDescriptor(
            made.get(), data_type(dtype), format(layout), small(shape[0]),
            small(stored_channels(layout, shape[1])), small(shape[2]), small(shape[3])),
        kWhat);
  return made;
}

TensorDescriptor channel_descriptor(std::int64_t channels, DType dtype) {
  return tensor_descriptor({1, channels, 1, 1}, kPlain, dtype);
}

ConvolutionDescriptor convolution_descriptor(const Conv2dShape& s, DType dtype, bool tf32) {
  ConvolutionDescriptor made(calls().cudnnCreateConvolutionDescriptor,
                             calls().cudnnDestroyConvolutionDescriptor);
  const DType sum = dtype == DType::f64 ? DType::f64 : DType::f32;
  check(calls().cudnnSetConvolution2dDescriptor(made.get(), small(s.padding_h), small(s.padding_w),
                                                small(s.stride_h), small(s.stride_w),
                                                small(s.dilation_h), small(s.dilation_w),
                                                CUDNN_CROSS_CORRELATION, data_type(sum)),
        kWhat);
  check(calls().cudnnSetConvolutionGroupCount(made.get(), small(s.groups)), kWhat);
  // FMA: no tensor cores for f32; default: tensor cores, for f32 with TF32.
  const bool fma = dtype == DType::f32 && !tf32;
  check(calls().cudnnSetConvolutionMathType(made.get(), fma ? CUDNN_FMA_MATH : CUDNN_DEFAULT_MATH),
        kWhat);
  return made;
}

PoolingDescriptor pooling_descriptor(const Pool2dShape& s, cudnnPoolingMode_t mode) {
  PoolingDescriptor made(calls().cudnnCreatePoolingDescriptor,
                         calls().cudnnDestroyPoolingDescriptor);
  check(calls().cudnnSetPooling2dDescriptor(
            made.get(), mode, CUDNN_PROPAGATE_NAN, small(s.kernel_h), small(s.kernel_w),
            small(s.padding_h), small(s.padding_w), small(s.stride_h), small(s.stride_w)),
        kWhat);
  return made;
}

ActivationDescriptor relu_descriptor() {
  ActivationDescriptor made(calls().cudnnCreateActivationDescriptor,
                            calls().cudnnDestroyActivationDescriptor);
  check(calls().cudnnSetActivationDescriptor(made.get(), CUDNN_ACTIVATION_RELU, CUDNN_PROPAGATE_NAN,
                                             0),
        kWhat);
  return made;
}

}  // namespace convoy::cuda::vendor
