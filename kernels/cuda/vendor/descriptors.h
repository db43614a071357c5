// cuDNN's descriptors as values.
#pragma once

#include <cudnn.h>

#include <utility>

#include "kernels/base/buffer.h"
#include "kernels/base/shape.h"
#include "kernels/shapes.h"

namespace convoy::cuda::vendor {

/// Owns a descriptor that `destroy` ends.
template <class Raw>
class Descriptor {
 public:
  using Create = cudnnStatus_t (*)(Raw*);
  using Destroy = cudnnStatus_t (*)(Raw);
  Descriptor(Create create, Destroy destroy);
  ~Descriptor() {
    if (raw_) destroy_(raw_);
  }
  Descriptor(Descriptor&& other) noexcept
      : destroy_(other.destroy_), raw_(std::exchange(other.raw_, nullptr)) {}
  Descriptor& operator=(Descriptor&&) = delete;
  Raw get() const { return raw_; }

 private:
  Destroy destroy_;
  Raw raw_ = nullptr;
};

using TensorDescriptor = Descriptor<cudnnTensorDescriptor_t>;
using FilterDescriptor = Descriptor<cudnnFilterDescriptor_t>;
using ConvolutionDescriptor = Descriptor<cudnnConvolutionDescriptor_t>;
using PoolingDescriptor = Descriptor<cudnnPoolingDescriptor_t>;
using ActivationDescriptor = Descriptor<cudnnActivationDescriptor_t>;

cudnnDataType_t data_type(DType dtype);
/// NCHW or NHWC.
cudnnTensorFormat_t format(LayoutId layout);

/// `shape` (rank 4) as it is stored in `layout`: channels padded by zeros count.
TensorDescriptor tensor_descriptor(const Shape& shape, LayoutId layout, DType dtype);
FilterDescriptor filter_descriptor(const Shape& shape, LayoutId layout, DType dtype);
/// Values per channel: (1, channels, 1, 1).
TensorDescriptor channel_descriptor(std::int64_t channels, DType dtype);
ConvolutionDescriptor convolution_descriptor(const Conv2dShape& shape, DType dtype, bool tf32);
PoolingDescriptor pooling_descriptor(const Pool2dShape& shape, cudnnPoolingMode_t mode);
ActivationDescriptor relu_descriptor();

}  // namespace convoy::cuda::vendor
