// Pooling over windows of x (n, c, h, w), plane by plane.
#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/reference/common.h"
#include "kernels/reference/reference.h"

namespace convoy::reference {
namespace {

// The place of a window: plane n * c, output row and column, and the same as one index into y.
struct Window {
  std::int64_t plane, row, column, index;
};

// Calls use(window) for all windows in the order of y.
template <class Use>
void for_windows(const Pool2dShape& shape, Use use) {
  std::int64_t index = 0;
  for (std::int64_t plane = 0; plane < shape.n * shape.c; ++plane) {
    for (std::int64_t row = 0; row < shape.out_h(); ++row) {
      for (std::int64_t column = 0; column < shape.out_w(); ++column) {
        use(Window{plane, row, column, index++});
      }
    }
  }
}

// Calls use(index into x, position in the window) for the places of a window that are not padding.
template <class Use>
void for_places(const Pool2dShape& shape, const Window& window, Use use) {
  for (std::int64_t i = 0; i < shape.kernel_h; ++i) {
    const std::int64_t h = window.row * shape.stride_h - shape.padding_h + i;
    if (h < 0 || h >= shape.h) continue;
    for (std::int64_t j = 0; j < shape.kernel_w; ++j) {
      const std::int64_t w = window.column * shape.stride_w - shape.padding_w + j;
      if (w < 0 || w >= shape.w) continue;
      use((window.plane * shape.h + h) * shape.w + w, i * shape.kernel_w + j);
    }
  }
}

template <class T>
void max_forward(const Pool2dShape& shape, const T* x, T* y, std::uint8_t* index) {
  for_windows(shape, [&](const Window& window) {
    T best = -INFINITY;
    std::int64_t best_position = -1;
    for_places(shape, window, [&](std::int64_t place, std::int64_t position) {
      const T value = x[place];
      const bool better = value > best || (std::isnan(value) && !std::isnan(best));
      if (best_position >= 0 && !better) return;
      best = value;
      best_position = position;
    });
    y[window.index] = best;
    if (index)
      index[window.index] = static_cast<std::uint8_t>(std::max<std::int64_t>(best_position, 0));
  });
}

// Sums of overlapping windows are taken in double, then stored.
template <class T, class Add>
void gather_gradient(const Pool2dShape& shape, T* dx, Add add) {
  std::vector<double> sums(shape.n * shape.c * shape.h * shape.w);
  for_windows(shape, [&](const Window& window) { add(window, sums); });
  for (std::size_t i = 0; i < sums.size(); ++i) dx[i] = static_cast<T>(sums[i]);
}

template <class T>
void max_backward(const Pool2dShape& shape, const T* dy, const std::uint8_t* index, T* dx) {
  gather_gradient(shape, dx, [=](const Window& window, std::vector<double>& sums) {
    for_places(shape, window, [&](std::int64_t place, std::int64_t position) {
      if (position == index[window.index]) sums[place] += dy[window.index];
    });
  });
}

// What the sum of a window is divided by.
double divisor(const Pool2dShape& shape, const Window& window) {
  if (shape.count_padding) return static_cast<double>(shape.kernel_h * shape.kernel_w);
  double places = 0;
  for_places(shape, window, [&](std::int64_t, std::int64_t) { places += 1; });
  return places;
}

template <class T>
void avg_forward(const Pool2dShape& shape, const T* x, T* y) {
  for_windows(shape, [&](const Window& window) {
    double sum = 0;
    for_places(shape, window, [&](std::int64_t place, std::int64_t) { sum += x[place]; });
    y[window.index] = static_cast<T>(sum / divisor(shape, window));
  });
}

template <class T>
void avg_backward(const Pool2dShape& shape, const T* dy, T* dx) {
  gather_gradient(shape, dx, [=](const Window& window, std::vector<double>& sums) {
    const double share = dy[window.index] / divisor(shape, window);
    for_places(shape, window, [&](std::int64_t place, std::int64_t) { sums[place] += share; });
  });
}

void check_index(const char* kernel, const Pool2dShape& shape, ConstBuffer index) {
  check_is(kernel, "index", index, DType::u8);
  CONVOY_CHECK(shape.kernel_h * shape.kernel_w <= 256,
               "{}: window {} x {} is too large, expected at most 256 places", kernel,
               shape.kernel_h, shape.kernel_w);
}

}  // namespace

void max_pool2d_forward(Stream& stream, const Pool2dShape& shape, ConstBuffer x, Buffer y,
                        Buffer index) {
  constexpr const char* kName = "max_pool2d_forward";
  if (index) check_index(kName, shape, index);
  with_type(kName, common_dtype(kName, {x, y}), [&]<class T>(T) {
    host(stream).submit(
        [=] { max_forward(shape, x.as<T>(), y.as<T>(), index.as<std::uint8_t>()); });
  });
}

void max_pool2d_backward(Stream& stream, const Pool2dShape& shape, ConstBuffer dy,
                         ConstBuffer index, Buffer dx) {
  constexpr const char* kName = "max_pool2d_backward";
  check_index(kName, shape, index);
  with_type(kName, common_dtype(kName, {dy, dx}), [&]<class T>(T) {
    host(stream).submit(
        [=] { max_backward(shape, dy.as<T>(), index.as<std::uint8_t>(), dx.as<T>()); });
  });
}

void avg_pool2d_forward(Stream& stream, const Pool2dShape& shape, ConstBuffer x, Buffer y) {
  constexpr const char* kName = "avg_pool2d_forward";
  with_type(kName, common_dtype(kName, {x, y}), [&]<class T>(T) {
    host(stream).submit([=] { avg_forward(shape, x.as<T>(), y.as<T>()); });
  });
}

void avg_pool2d_backward(Stream& stream, const Pool2dShape& shape, ConstBuffer dy, Buffer dx) {
  constexpr const char* kName = "avg_pool2d_backward";
  with_type(kName, common_dtype(kName, {dy, dx}), [&]<class T>(T) {
    host(stream).submit([=] { avg_backward(shape, dy.as<T>(), dx.as<T>()); });
  });
}

}  // namespace convoy::reference
