// Batch norm by cuDNN, whose functions do more than one step of the seam: what is not asked for
// goes to scratch memory.
#include "kernels/cuda/check.h"
#include "kernels/cuda/gpu_stream.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/operands.h"
#include "kernels/cuda/vendor/kernels.h"
#include "kernels/cuda/vendor/moments.h"
#include "kernels/cuda/vendor/scratch.h"
#include "kernels/cuda/vendor/vendor.h"

namespace convoy::cuda::vendor {
namespace {

constexpr cudnnBatchNormMode_t kMode = CUDNN_BATCHNORM_SPATIAL;
constexpr double kEpsilon = 1e-5;  // of results that are thrown away
constexpr float kOne = 1, kZero = 0;

std::size_t bytes_of_channels(const BatchNormShape& shape) {
  return Scratch::padded(sizeof(float) * std::size_t(shape.c));
}

TensorDescriptor describe(const BatchNormShape& shape, ConstBuffer buffer) {
  return tensor_descriptor(shape.x(), buffer.layout, buffer.dtype);
}

// One value of f32 per channel, everywhere `value`.
Buffer channels_of(Stream& stream, const BatchNormShape& shape, Scratch& scratch, double value) {
  const Buffer made{scratch.take(bytes_of_channels(shape)), DType::f32};
  cuda::fill(stream, shape.c, value, made);
  return made;
}

// dz = dy where y > 0.
void mask_gradient(const Lock& device, const char* kernel, const BatchNormShape& shape,
                   ConstBuffer y, ConstBuffer dy, void* dz) {
  const ActivationDescriptor relu = relu_descriptor();
  const TensorDescriptor of = describe(shape, y);
  check(calls().cudnnActivationBackward(device->cudnn, relu.get(), &kOne, of.get(), y.data,
                                        of.get(), dy.data, of.get(), y.data, &kZero, of.get(), dz),
        kernel);
}

struct Backward {
  ConstBuffer x;
  const void* dz;
  const void* gamma;
  const float *mean, *inverse_deviation;
  double epsilon;
  void* dx;
  float *dgamma, *dbeta;
};

void run_backward(const Lock& device, const char* kernel, const BatchNormShape& shape,
                  const Backward& b) {
  const TensorDescriptor of = describe(shape, b.x);
  const TensorDescriptor channels = channel_descriptor(shape.c, DType::f32);
  check(calls().cudnnBatchNormalizationBackward(device->cudnn, kMode, &kOne, &kZero, &kOne, &kZero,
                                                of.get(), b.x.data, of.get(), b.dz, of.get(), b.dx,
                                                channels.get(), b.gamma, b.dgamma, b.dbeta,
                                                b.epsilon, b.mean, b.inverse_deviation),
        kernel);
}

}  // namespace

std::size_t batch_norm_mask_bytes(const BatchNormShape&, LayoutId, DType) {
  return 0;
}

void batch_norm_statistics(Stream& stream, const BatchNormShape& shape, ConstBuffer x, Buffer mean,
                           Buffer m2) {
  constexpr const char* kName = "batch_norm_statistics";
  const std::int64_t count = shape.n * shape.spatial;
  if (x.dtype == DType::f64 || count < 2 || shape.c == 0) {
    return cuda::batch_norm_statistics(stream, shape, x, mean, m2);
  }
  check_is(kName, "mean", mean, DType::f64);
  check_is(kName, "m2", m2, DType::f64);
  const std::size_t bytes = cuda::layout_bytes(x.layout, shape.x(), x.dtype);
  Scratch scratch(stream, 3 * bytes_of_channels(shape) + bytes);
  const Buffer ones = channels_of(stream, shape, scratch, 1);
  auto* const found = static_cast<float*>(scratch.take(bytes_of_channels(shape)));
  auto* const unbiased = static_cast<float*>(scratch.take(bytes_of_channels(shape)));
  void* const y = scratch.take(bytes);
  {
    const Lock device(stream, kName);
    const TensorDescriptor of = describe(shape, x);
    const TensorDescriptor channels = channel_descriptor(shape.c, DType::f32);
    check(calls().cudnnBatchNormalizationForwardTraining(
              device->cudnn, kMode, &kOne, &kZero, of.get(), x.data, of.get(), y, channels.get(),
              ones.data, ones.data, 1.0, found, unbiased, kEpsilon, nullptr, nullptr),
          kName);
  }
  moments_from_cudnn(stream, shape.c, static_cast<double>(count), found, unbiased,
                     static_cast<double*>(mean.data), static_cast<double*>(m2.data));
}

void batch_norm_apply(Stream& stream, const BatchNormShape& shape, ConstBuffer x,
                      const BatchNormStatistics& statistics, double epsilon, ConstBuffer gamma,
                      ConstBuffer beta, ConstBuffer residual, bool relu, Buffer y, Buffer mask) {
  constexpr const char* kName = "batch_norm_apply";
  if (mask || x.dtype == DType::f64 || shape.c == 0 || shape.n * shape.spatial == 0) {
    return cuda::batch_norm_apply(stream, shape, x, statistics, epsilon, gamma, beta, residual,
                                  relu, y, mask);
  }
  Scratch scratch(stream, 2 * bytes_of_channels(shape));
  auto* const mean = static_cast<float*>(scratch.take(bytes_of_channels(shape)));
  auto* const variance = static_cast<float*>(scratch.take(bytes_of_channels(shape)));
  moments_to_cudnn(stream, shape.c, statistics, epsilon, {mean, variance, nullptr});
  const Lock device(stream, kName);
  const TensorDescriptor from = describe(shape, x), to = describe(shape, y);
  const TensorDescriptor channels = channel_descriptor(shape.c, DType::f32);
  check(calls().cudnnBatchNormalizationForwardInference(
            device->cudnn, kMode, &kOne, &kZero, from.get(), x.data, to.get(), y.data,
            channels.get(), gamma.data, beta.data, mean, variance, epsilon),
        kName);
  if (residual) {
    const TensorDescriptor of = describe(shape, residual);
    check(calls().cudnnAddTensor(device->cudnn, &kOne, of.get(), residual.data, &kOne, to.get(),
                                 y.data),
          kName);
  }
  if (!relu) return;
  const ActivationDescriptor activation = relu_descriptor();
  check(calls().cudnnActivationForward(device->cudnn, activation.get(), &kOne, to.get(), y.data,
                                       &kZero, to.get(), y.data),
        kName);
}

void batch_norm_backward_reduce(Stream& stream, const BatchNormShape& shape, ConstBuffer x,
                                ConstBuffer y, ConstBuffer mask, ConstBuffer dy,
                                const BatchNormStatistics& statistics, double epsilon, bool relu,
                                Buffer sum_dz, Buffer sum_dz_xhat) {
  constexpr const char* kName = "batch_norm_backward_reduce";
  if (mask || x.dtype == DType::f64 || shape.c == 0 || shape.n * shape.spatial == 0) {
    return cuda::batch_norm_backward_reduce(stream, shape, x, y, mask, dy, statistics, epsilon,
                                            relu, sum_dz, sum_dz_xhat);
  }
  check_is(kName, "sum_dz", sum_dz, DType::f64);
  check_is(kName, "sum_dz_xhat", sum_dz_xhat, DType::f64);
  const std::size_t bytes = Scratch::padded(cuda::layout_bytes(x.layout, shape.x(), x.dtype));
  Scratch scratch(stream, 5 * bytes_of_channels(shape) + 2 * bytes);
  const Buffer ones = channels_of(stream, shape, scratch, 1);
  const auto take = [&] { return static_cast<float*>(scratch.take(bytes_of_channels(shape))); };
  float *const mean = take(), *const inverse = take(), *const dgamma = take(),
               *const dbeta = take();
  void *const dz = scratch.take(bytes), *const dx = scratch.take(bytes);
  moments_to_cudnn(stream, shape.c, statistics, epsilon, {mean, nullptr, inverse});
  {
    const Lock device(stream, kName);
    if (relu) mask_gradient(device, kName, shape, y, dy, dz);
    run_backward(device, kName, shape,
                 {x, relu ? dz : dy.data, ones.data, mean, inverse, epsilon, dx, dgamma, dbeta});
  }
  cuda::cast(stream, shape.c, {dbeta, DType::f32}, sum_dz);
  cuda::cast(stream, shape.c, {dgamma, DType::f32}, sum_dz_xhat);
}

void batch_norm_backward_apply(Stream& stream, const BatchNormShape& shape, ConstBuffer x,
                               ConstBuffer y, ConstBuffer mask, ConstBuffer dy,
                               const BatchNormStatistics& statistics, double epsilon, bool relu,
                               ConstBuffer gamma, ConstBuffer sum_dz, ConstBuffer sum_dz_xhat,
                               Buffer dx, Buffer dresidual) {
  constexpr const char* kName = "batch_norm_backward_apply";
  const bool of_this_batch = sum_dz && !statistics.device_count &&
                             statistics.count == static_cast<double>(shape.n * shape.spatial);
  if (!of_this_batch || mask || x.dtype == DType::f64 || shape.c == 0) {
    return cuda::batch_norm_backward_apply(stream, shape, x, y, mask, dy, statistics, epsilon, relu,
                                           gamma, sum_dz, sum_dz_xhat, dx, dresidual);
  }
  const std::size_t bytes = Scratch::padded(cuda::layout_bytes(x.layout, shape.x(), x.dtype));
  Scratch scratch(stream, 4 * bytes_of_channels(shape) + bytes);
  const auto take = [&] { return static_cast<float*>(scratch.take(bytes_of_channels(shape))); };
  float *const mean = take(), *const inverse = take(), *const dgamma = take(),
               *const dbeta = take();
  void* const dz = dresidual ? dresidual.data : scratch.take(bytes);
  moments_to_cudnn(stream, shape.c, statistics, epsilon, {mean, nullptr, inverse});
  const Lock device(stream, kName);
  if (relu) {
    mask_gradient(device, kName, shape, y, dy, dz);
  } else if (dresidual) {
    cuda::check(cudaMemcpyAsync(dz, dy.data, cuda::layout_bytes(dy.layout, shape.x(), dy.dtype),
                                cudaMemcpyDeviceToDevice, handle(stream)));
  }
  run_backward(
      device, kName, shape,
      {x, relu ? dz : dy.data, gamma.data, mean, inverse, epsilon, dx.data, dgamma, dbeta});
}

}  // namespace convoy::cuda::vendor
