// Layouts of GPUs by their definition, element by element.
#include "kernels/cuda/layout.h"
#include "tests/kernels/cuda/device_array.h"
#include "tests/support/expect_error.h"

namespace convoy::testing {
namespace {

using CONVOY_GPU::kChannelsLast;
using CONVOY_GPU::kChannelsLast4;
using CONVOY_GPU::stored_channels;

// (n, c, h, w): one channel, a pixel, tiles that are cut both ways, whole tiles, padding.
const std::vector<Shape> kShapes = {{2, 3, 5, 7},   {1, 1, 4, 4}, {3, 4, 1, 1}, {2, 33, 7, 5},
                                    {1, 64, 8, 12}, {2, 6, 1, 9}, {5, 3, 1, 1}, {0, 3, 4, 4}};

// `plain` as it lies in `layout`; padding is zero.
template <class T>
std::vector<T> laid_out(const Shape& shape, LayoutId layout, const std::vector<T>& plain) {
  if (layout == kPlain) return plain;
  const std::int64_t pixels = shape[2] * shape[3], pitch = stored_channels(layout, shape[1]);
  std::vector<T> result(shape[0] * pixels * pitch, as<T>(0));
  for (std::int64_t n = 0; n < shape[0]; ++n) {
    for (std::int64_t c = 0; c < shape[1]; ++c) {
      for (std::int64_t i = 0; i < pixels; ++i) {
        result[(n * pixels + i) * pitch + c] = plain[(n * shape[1] + c) * pixels + i];
      }
    }
  }
  return result;
}

template <class T>
void check_reorder(const Shape& shape, LayoutId from, LayoutId to, int offset) {
  INFO(to_string(shape) << " of " << name(dtype_of<T>) << " from layout " << from << " to " << to);
  const std::vector<T> plain = counting<T>(shape.count());
  const std::vector<T> expected = laid_out(shape, to, plain);
  CHECK(gpu_kernels().layout_bytes(to, shape, dtype_of<T>) == expected.size() * sizeof(T));
  const DeviceArray<T> x(laid_out(shape, from, plain), offset), y(std::ssize(expected), offset);
  gpu_kernels().reorder(gpu_stream(), shape, x.buffer(from), y.buffer(to));
  CHECK(y.values() == expected);
}

}  // namespace

TEST_CASE("gpu reorder: between all layouts, in all types, at any address") {
  for (const Shape& shape : kShapes) {
    for (LayoutId from : {kPlain, kChannelsLast, kChannelsLast4}) {
      for (LayoutId to : {kPlain, kChannelsLast, kChannelsLast4}) {
        check_reorder<float>(shape, from, to, 0);
        check_reorder<Bf16>(shape, from, to, 1);
        check_reorder<double>(shape, from, to, 1);
        check_reorder<std::uint8_t>(shape, from, to, 0);
      }
    }
  }
}

TEST_CASE("gpu layouts: what is none, or does not fit, is refused") {
  check_error(
      [] {
        gpu_kernels().layout_bytes(3, {1, 1, 1, 1}, DType::f32);
      },
      ErrorKind::internal, "layout_bytes: layout 3 is none of GPUs, expected 0 to 2");
  check_error(
      [] {
        gpu_kernels().layout_bytes(kChannelsLast, {2, 3}, DType::f32);
      },
      ErrorKind::internal, "layout_bytes: (2, 3) in layout 1, expected four extents");
  check_error(
      [] {
        const DeviceArray<float> x(1);
        const DeviceArray<Bf16> y(1);
        gpu_kernels().reorder(gpu_stream(), {1}, x.buffer(), y.buffer());
      },
      ErrorKind::usage, "reorder: operands are f32 and bf16, expected one dtype");
  check_error(
      [] {
        const DeviceArray<float> x(1);
        gpu_kernels().binary_forward(gpu_stream(), Binary(0), 1, x.buffer(), x.buffer(1),
                                     x.buffer());
      },
      ErrorKind::internal, "binary_forward: operands have layouts 0 and 1, expected one layout");
}

}  // namespace convoy::testing
