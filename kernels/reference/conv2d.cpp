// Convolution as matrix products over one gathered operand: the places (image, row, column) of one
// tensor against the taps (channel, r, s) of the filter. What a place and a tap meet is one element
// of x (forward, weight gradient) or of dy (input gradient), or nothing, which counts as zero.
#include "kernels/reference/common.h"
#include "kernels/reference/product.h"
#include "kernels/reference/reference.h"

namespace convoy::reference {
namespace {

struct Tap {
  std::int64_t offset, row, column;  // row, column: added to the place's
};

struct Place {
  std::int64_t offset, row, column;
};

// From the sum of a place's and a tap's coordinate to a row (or column) of the gathered tensor.
using AxisMap = std::vector<std::int64_t>;
constexpr std::int64_t kNothing = -1;

template <class T>
struct Gather {
  const T* data;
  std::int64_t width;
  std::vector<Tap> taps;
  std::vector<Place> places;
  AxisMap rows, columns;

  double at(std::int64_t tap_index, std::int64_t place_index) const {
    const Tap& tap = taps[tap_index];
    const Place& place = places[place_index];
    const std::int64_t row = rows[place.row + tap.row];
    const std::int64_t column = columns[place.column + tap.column];
    if (row == kNothing || column == kNothing) return 0;
    return data[place.offset + tap.offset + row * width + column];
  }
};

// Output place p and tap r meet at padded coordinate p * stride + r * dilation.
AxisMap padded_axis(std::int64_t extent, std::int64_t padding) {
  AxisMap map(extent + 2 * padding, kNothing);
  for (std::int64_t i = 0; i < extent; ++i) map[padding + i] = i;
  return map;
}

// Input place h and tap r meet at output p where p * stride + r * dilation = h + padding. Indexed
// by h + padding + (taps - 1 - r) * dilation, which is not negative.
AxisMap strided_axis(std::int64_t extent, std::int64_t padding, std::int64_t taps,
                     std::int64_t dilation, std::int64_t stride, std::int64_t out) {
  const std::int64_t shift = (taps - 1) * dilation;
  AxisMap map(extent + padding + shift, kNothing);
  for (std::int64_t p = 0; p < out; ++p) {
    const std::int64_t index = p * stride + shift;
    if (index < std::ssize(map)) map[index] = p;
  }
  return map;
}

// What x (of one group) gives to each output place and each tap.
template <class T>
Gather<T> gather_input(const Conv2dShape& shape, const T* x, std::int64_t group) {
  const std::int64_t channels = shape.c / shape.groups, plane = shape.h * shape.w;
  Gather<T> result{
      x + group * channels * plane,         shape.w, {}, {}, padded_axis(shape.h, shape.padding_h),
      padded_axis(shape.w, shape.padding_w)};
  for (std::int64_t c = 0; c < channels; ++c) {
    for (std::int64_t r = 0; r < shape.r; ++r) {
      for (std::int64_t s = 0; s < shape.s; ++s) {
        result.taps.push_back({c * plane, r * shape.dilation_h, s * shape.dilation_w});
      }
    }
  }
  for (std::int64_t n = 0; n < shape.n; ++n) {
    for (std::int64_t p = 0; p < shape.out_h(); ++p) {
      for (std::int64_t q = 0; q < shape.out_w(); ++q) {
        result.places.push_back({n * shape.c * plane, p * shape.stride_h, q * shape.stride_w});
      }
    }
  }
  return result;
}

// What dy (of one group) gives to each input place and each tap (k, r, s).
template <class T>
Gather<T> gather_output(const Conv2dShape& shape, const T* dy, std::int64_t group) {
  const std::int64_t channels = shape.k / shape.groups, plane = shape.out_h() * shape.out_w();
  Gather<T> result{dy + group * channels * plane,
                   shape.out_w(),
                   {},
                   {},
                   strided_axis(shape.h, shape.padding_h, shape.r, shape.dilation_h, shape.stride_h,
                                shape.out_h()),
                   strided_axis(shape.w, shape.padding_w, shape.s, shape.dilation_w, shape.stride_w,
                                shape.out_w())};
  for (std::int64_t k = 0; k < channels; ++k) {
    for (std::int64_t r = 0; r < shape.r; ++r) {
      for (std::int64_t s = 0; s < shape.s; ++s) {
        result.taps.push_back({k * plane, (shape.r - 1 - r) * shape.dilation_h,
                               (shape.s - 1 - s) * shape.dilation_w});
      }
    }
  }
  for (std::int64_t n = 0; n < shape.n; ++n) {
    for (std::int64_t h = 0; h < shape.h; ++h) {
      for (std::int64_t w = 0; w < shape.w; ++w) {
        result.places.push_back({n * shape.k * plane, h + shape.padding_h, w + shape.padding_w});
      }
    }
  }
  return result;
}

template <class T>
void forward(const Conv2dShape& shape, const T* x, const T* w, const T* b, T* y) {
  const std::int64_t filters = shape.k / shape.groups, plane = shape.out_h() * shape.out_w();
  for (std::int64_t group = 0; group < shape.groups; ++group) {
    const Gather<T> gather = gather_input(shape, x, group);
    const std::int64_t taps = std::ssize(gather.taps), first = group * filters;
    product(
        filters, std::ssize(gather.places), taps,
        [=](std::int64_t k, std::int64_t tap) { return w[(first + k) * taps + tap]; },
        [&](std::int64_t tap, std::int64_t place) { return gather.at(tap, place); },
        [=](std::int64_t k, std::int64_t place, double sum) {
          const std::int64_t n = place / plane, at = place % plane;
          y[(n * shape.k + first + k) * plane + at] = static_cast<T>(b ? sum + b[first + k] : sum);
        });
  }
}

template <class T>
void input_gradient(const Conv2dShape& shape, const T* dy, const T* w, T* dx) {
  const std::int64_t channels = shape.c / shape.groups, plane = shape.h * shape.w;
  const std::int64_t filter = shape.r * shape.s, filters = shape.k / shape.groups;
  for (std::int64_t group = 0; group < shape.groups; ++group) {
    const Gather<T> gather = gather_output(shape, dy, group);
    product(
        channels, std::ssize(gather.places), std::ssize(gather.taps),
        [=](std::int64_t c, std::int64_t tap) {
          const std::int64_t k = group * filters + tap / filter;
          return w[(k * channels + c) * filter + tap % filter];
        },
        [&](std::int64_t tap, std::int64_t place) { return gather.at(tap, place); },
        [=](std::int64_t c, std::int64_t place, double sum) {
          const std::int64_t n = place / plane, at = place % plane;
          dx[(n * shape.c + group * channels + c) * plane + at] = static_cast<T>(sum);
        });
  }
}

template <class T>
void weight_gradient(const Conv2dShape& shape, const T* x, const T* dy, T* dw) {
  const std::int64_t filters = shape.k / shape.groups, plane = shape.out_h() * shape.out_w();
  for (std::int64_t group = 0; group < shape.groups; ++group) {
    const Gather<T> gather = gather_input(shape, x, group);
    const std::int64_t taps = std::ssize(gather.taps), first = group * filters;
    product(
        filters, taps, std::ssize(gather.places),
        [=](std::int64_t k, std::int64_t place) {
          const std::int64_t n = place / plane, at = place % plane;
          return dy[(n * shape.k + first + k) * plane + at];
        },
        [&](std::int64_t place, std::int64_t tap) { return gather.at(tap, place); },
        [=](std::int64_t k, std::int64_t tap, double sum) {
          dw[(first + k) * taps + tap] = static_cast<T>(sum);
        });
  }
}

template <class T>
void bias_gradient(const Conv2dShape& shape, const T* dy, T* db) {
  const std::int64_t plane = shape.out_h() * shape.out_w();
  for (std::int64_t k = 0; k < shape.k; ++k) {
    double sum = 0;
    for (std::int64_t n = 0; n < shape.n; ++n) {
      const T* values = dy + (n * shape.k + k) * plane;
      for (std::int64_t i = 0; i < plane; ++i) sum += values[i];
    }
    db[k] = static_cast<T>(sum);
  }
}

}  // namespace

Conv2dLayouts conv2d_layouts(const Conv2dShape&, DType) {
  return {};
}

void conv2d_forward(Stream& stream, const Conv2dShape& shape, ConstBuffer x, ConstBuffer w,
                    ConstBuffer b, Buffer y) {
  with_type("conv2d_forward", common_dtype("conv2d_forward", {x, w, b, y}), [&]<class T>(T) {
    host(stream).submit([=] { forward(shape, x.as<T>(), w.as<T>(), b.as<T>(), y.as<T>()); });
  });
}

void conv2d_input_gradient(Stream& stream, const Conv2dShape& shape, ConstBuffer dy, ConstBuffer w,
                           Buffer dx) {
  constexpr const char* kName = "conv2d_input_gradient";
  with_type(kName, common_dtype(kName, {dy, w, dx}), [&]<class T>(T) {
    host(stream).submit([=] { input_gradient(shape, dy.as<T>(), w.as<T>(), dx.as<T>()); });
  });
}

void conv2d_weight_gradient(Stream& stream, const Conv2dShape& shape, ConstBuffer x, ConstBuffer dy,
                            Buffer dw, Buffer db) {
  constexpr const char* kName = "conv2d_weight_gradient";
  with_type(kName, common_dtype(kName, {x, dy, dw, db}), [&]<class T>(T) {
    host(stream).submit([=] {
      weight_gradient(shape, x.as<T>(), dy.as<T>(), dw.as<T>());
      if (db) bias_gradient(shape, dy.as<T>(), db.as<T>());
    });
  });
}

}  // namespace convoy::reference
