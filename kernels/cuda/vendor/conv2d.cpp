// Convolution by cuDNN.
#include "kernels/cuda/bias_gradient.h"
#include "kernels/cuda/gpu_stream.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/precision.h"
#include "kernels/cuda/vendor/kernels.h"
#include "kernels/cuda/vendor/scratch.h"
#include "kernels/cuda/vendor/vendor.h"

namespace convoy::cuda::vendor {
namespace {

// Factors of results and of what they replace, in the type of the sums.
struct Factors {
  explicit Factors(DType dtype) : wide(dtype == DType::f64) {}
  const void* one() const { return wide ? static_cast<const void*>(&one64) : &one32; }
  const void* zero() const { return wide ? static_cast<const void*>(&zero64) : &zero32; }

  bool wide;
  float one32 = 1, zero32 = 0;
  double one64 = 1, zero64 = 0;
};

ConvKey key_of(const Lock& device, Stream& stream, Pass pass, const Conv2dShape& shape,
               ConstBuffer x, ConstBuffer w, ConstBuffer y) {
  return {pass,
          shape,
          x.layout,
          w.layout,
          y.layout,
          x.dtype,
          allows_tf32(stream),
          device->deterministic};
}

// y += b. cuDNN adds only what has the same type.
void add_bias(Stream& stream, const char* kernel, const Conv2dShape& shape, ConstBuffer b,
              Buffer y) {
  if (b.dtype != y.dtype) {
    const Buffer same{stream.scratch(size_of(y.dtype) * std::size_t(shape.k)), y.dtype};
    cuda::cast(stream, shape.k, b, same);
    b = same;
  }
  const Lock device(stream, kernel);
  const Factors factors(y.dtype);
  const TensorDescriptor from = channel_descriptor(shape.k, b.dtype);
  const TensorDescriptor to = tensor_descriptor(shape.y(), y.layout, y.dtype);
  check(calls().cudnnAddTensor(device->cudnn, factors.one(), from.get(), b.data, factors.one(),
                               to.get(), y.data),
        kernel);
}

}  // namespace

void conv2d_forward(Stream& stream, const Conv2dShape& shape, ConstBuffer x, ConstBuffer w,
                    ConstBuffer b, Buffer y) {
  constexpr const char* kName = "conv2d_forward";
  require_parameter(kName, dtype_of_all(kName, {x, w, y}), b);
  {
    const Lock device(stream, kName);
    const Factors factors(x.dtype);
    const ConvPlan& p = conv_plan(*device, key_of(device, stream, Pass::forward, shape, x, w, y));
    check(calls().cudnnConvolutionForward(
              device->cudnn, factors.one(), p.x.get(), x.data, p.w.get(), w.data,
              p.convolution.get(), static_cast<cudnnConvolutionFwdAlgo_t>(p.algorithm),
              stream.scratch(p.workspace), p.workspace, factors.zero(), p.y.get(), y.data),
          kName);
  }
  if (b) add_bias(stream, kName, shape, b, y);
}

void conv2d_input_gradient(Stream& stream, const Conv2dShape& shape, ConstBuffer dy, ConstBuffer w,
                           Buffer dx) {
  constexpr const char* kName = "conv2d_input_gradient";
  dtype_of_all(kName, {dy, w, dx});
  const Lock device(stream, kName);
  const Factors factors(dy.dtype);
  const ConvPlan& p =
      conv_plan(*device, key_of(device, stream, Pass::input_gradient, shape, dx, w, dy));
  check(calls().cudnnConvolutionBackwardData(
            device->cudnn, factors.one(), p.w.get(), w.data, p.y.get(), dy.data,
            p.convolution.get(), static_cast<cudnnConvolutionBwdDataAlgo_t>(p.algorithm),
            stream.scratch(p.workspace), p.workspace, factors.zero(), p.x.get(), dx.data),
        kName);
}

void conv2d_weight_gradient(Stream& stream, const Conv2dShape& shape, ConstBuffer x, ConstBuffer dy,
                            Buffer dw, Buffer db) {
  constexpr const char* kName = "conv2d_weight_gradient";
  const DType dtype = dtype_of_all(kName, {x, dy});
  require_parameter(kName, dtype, dw);
  require_parameter(kName, dtype, db);
  const std::size_t bytes = cuda::layout_bytes(dw.layout, shape.weight(), dtype);
  Buffer narrow{dw.data, dtype, dw.layout};
  {
    const Lock device(stream, kName);
    const Factors factors(dtype);
    const ConvPlan& p =
        conv_plan(*device, key_of(device, stream, Pass::weight_gradient, shape, x, dw, dy));
    Scratch scratch(stream, Scratch::padded(p.workspace) + bytes);
    void* const workspace = scratch.take(p.workspace);
    if (dw.dtype != dtype) narrow.data = scratch.take(bytes);
    check(calls().cudnnConvolutionBackwardFilter(
              device->cudnn, factors.one(), p.x.get(), x.data, p.y.get(), dy.data,
              p.convolution.get(), static_cast<cudnnConvolutionBwdFilterAlgo_t>(p.algorithm),
              workspace, p.workspace, factors.zero(), p.w.get(), narrow.data),
          kName);
  }
  if (dw.dtype != dtype) {
    const auto count = static_cast<std::int64_t>(bytes / size_of(dtype));
    cuda::cast(stream, count, {narrow.data, dtype}, {dw.data, dw.dtype});
  }
  if (db) bias_gradient(stream, shape.y(), dy, db);
}

}  // namespace convoy::cuda::vendor
