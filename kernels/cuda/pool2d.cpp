// Pooling of the seam: checks of operands and what the kernels of pool2d.cu get.
#include <algorithm>
#include <limits>

#include "kernels/base/error.h"
#include "kernels/cuda/gpu_stream.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/operands.h"
#include "kernels/cuda/pool2d_kernels.h"

namespace convoy::CONVOY_GPU {
namespace {

PoolGeometry geometry_of(const char* kernel, const Pool2dShape& s) {
  CONVOY_CHECK(s.padding_h < s.kernel_h && s.padding_w < s.kernel_w,
               "{}: padding {}x{} leaves windows of {}x{} outside the image", kernel, s.padding_h,
               s.padding_w, s.kernel_h, s.kernel_w);
  CONVOY_CHECK(
      s.c * std::max(s.h * s.w, s.out_h() * s.out_w()) < std::numeric_limits<std::int32_t>::max(),
      "{}: an image of {}x{}x{} has more than 2^31 values", kernel, s.c, s.h, s.w);
  auto narrow = [](std::int64_t value) { return static_cast<std::int32_t>(value); };
  return {narrow(s.c),        narrow(s.h),         narrow(s.w),         narrow(s.out_h()),
          narrow(s.out_w()),  narrow(s.kernel_h),  narrow(s.kernel_w),  narrow(s.stride_h),
          narrow(s.stride_w), narrow(s.padding_h), narrow(s.padding_w), s.count_padding};
}

/// `written` is one of the operands, all given.
PoolProblem problem_of(const char* kernel, const Pool2dShape& shape, ConstBuffer written,
                       std::initializer_list<ConstBuffer> operands) {
  return {written.dtype, channel_vector(written.dtype, shape.c, operands),
          written.layout == kChannelsLast, shape.n, geometry_of(kernel, shape)};
}

void check_index(const char* kernel, const Pool2dShape& shape, ConstBuffer index) {
  CONVOY_DCHECK(index && index.dtype == DType::u8, "{}: index is {}, expected u8", kernel,
                index ? name(index.dtype) : "left out");
  CONVOY_CHECK(shape.kernel_h * shape.kernel_w <= 256,
               "{}: window {} x {} is too large, expected at most 256 places", kernel,
               shape.kernel_h, shape.kernel_w);
}

// Operands with x's and y's extents.
struct Sides {
  const char* kernel;
  const Pool2dShape& shape;
  ActivationIn x(ConstBuffer buffer) const {
    return activation(kernel, buffer, shape.c, shape.h * shape.w);
  }
  ActivationIn y(ConstBuffer buffer) const {
    return activation(kernel, buffer, shape.c, shape.out_h() * shape.out_w());
  }
  ActivationOut x_out(Buffer buffer) const {
    return activation_out(kernel, buffer, shape.c, shape.h * shape.w);
  }
  ActivationOut y_out(Buffer buffer) const {
    return activation_out(kernel, buffer, shape.c, shape.out_h() * shape.out_w());
  }
};

bool is_empty(const Shape& shape) {
  return shape.count() == 0;
}

}  // namespace

void max_pool2d_forward(Stream& stream, const Pool2dShape& shape, ConstBuffer x, Buffer y,
                        Buffer index) {
  constexpr const char* kName = "max_pool2d_forward";
  activation_dtype(kName, {x, y});
  if (index) check_index(kName, shape, index);
  const PoolProblem problem = problem_of(kName, shape, y, {x, y, index});
  const Sides sides{kName, shape};
  const ActivationIn in = sides.x(x);
  const ActivationOut out = sides.y_out(y), position = sides.y_out(index);
  if (is_empty(shape.y())) return;
  launch_max_forward(handle(stream), problem, in, out, position);
}

void max_pool2d_backward(Stream& stream, const Pool2dShape& shape, ConstBuffer dy,
                         ConstBuffer index, Buffer dx) {
  constexpr const char* kName = "max_pool2d_backward";
  activation_dtype(kName, {dy, dx});
  check_index(kName, shape, index);
  const PoolProblem problem = problem_of(kName, shape, dx, {dy, index, dx});
  const Sides sides{kName, shape};
  const ActivationIn gradient = sides.y(dy), position = sides.y(index);
  const ActivationOut out = sides.x_out(dx);
  if (is_empty(shape.x())) return;
  launch_max_backward(handle(stream), problem, gradient, position, out);
}

void avg_pool2d_forward(Stream& stream, const Pool2dShape& shape, ConstBuffer x, Buffer y) {
  constexpr const char* kName = "avg_pool2d_forward";
  activation_dtype(kName, {x, y});
  const PoolProblem problem = problem_of(kName, shape, y, {x, y});
  const Sides sides{kName, shape};
  const ActivationIn in = sides.x(x);
  const ActivationOut out = sides.y_out(y);
  if (is_empty(shape.y())) return;
  launch_avg_forward(handle(stream), problem, in, out);
}

void avg_pool2d_backward(Stream& stream, const Pool2dShape& shape, ConstBuffer dy, Buffer dx) {
  constexpr const char* kName = "avg_pool2d_backward";
  activation_dtype(kName, {dy, dx});
  const PoolProblem problem = problem_of(kName, shape, dx, {dy, dx});
  const Sides sides{kName, shape};
  const ActivationIn gradient = sides.y(dy);
  const ActivationOut out = sides.x_out(dx);
  if (is_empty(shape.x())) return;
  launch_avg_backward(handle(stream), problem, gradient, out);
}

}  // namespace convoy::CONVOY_GPU
