#include "engine/data/resize.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "engine/data/scale_rows.h"
#include "engine/data/vector_clones.h"
#include "kernels/base/error.h"

namespace convoy {
namespace {

constexpr std::int32_t kHalf = 1 << (kResizeBits - 1);

/// How one axis is scaled: `from`..`to` of `size` source pixels become `out` pixels, of which
/// `count` from `first` on are wanted.
struct Axis {
  int size;
  float from;
  float to;
  std::int64_t out;
  std::int64_t first;
  int count;
};

double triangle(double x) {
  return std::max(0.0, 1.0 - std::abs(x));
}

std::int32_t to_fixed(double v) {
  return static_cast<std::int32_t>((v < 0 ? -0.5 : 0.5) + v * (1 << kResizeBits));
}

/// The weights of the source pixels first..first+number-1 for an output pixel centred at `center`.
void fill_weights(double center, double filter_scale, int first, int number, std::int32_t* out) {
  double reciprocal = 1.0 / filter_scale;
  std::vector<double> raw(static_cast<std::size_t>(number));
  double sum = 0;
  for (int k = 0; k < number; ++k) {
    raw[k] = triangle((k + first - center + 0.5) * reciprocal);
    sum += raw[k];
  }
  for (int k = 0; k < number; ++k) out[k] = to_fixed(sum != 0 ? raw[k] / sum : raw[k]);
}

ResizeWeights make_weights(const Axis& axis) {
  double scale = static_cast<double>(axis.to - axis.from) / static_cast<double>(axis.out);
  double filter_scale = std::max(scale, 1.0);
  double support = filter_scale;
  ResizeWeights weights;
  weights.most = static_cast<int>(std::ceil(support)) * 2 + 1;
  weights.values.resize(static_cast<std::size_t>(weights.most) * axis.count);
  for (int i = 0; i < axis.count; ++i) {
    double center = axis.from + (static_cast<double>(axis.first + i) + 0.5) * scale;
    int first = std::max(0, static_cast<int>(center - support + 0.5));
    int end = std::min(axis.size, static_cast<int>(center + support + 0.5));
    weights.first.push_back(first);
    weights.number.push_back(end - first);
    fill_weights(center, filter_scale, first, end - first,
                 weights.values.data() + static_cast<std::size_t>(i) * weights.most);
  }
  return weights;
}

inline std::uint8_t clip(std::int32_t v) {
  return static_cast<std::uint8_t>(std::clamp(v >> kResizeBits, 0, 255));
}

/// One output row: the weighted sum of `number` rows of `bytes` bytes each.
CONVOY_VECTOR_CLONES
void add_rows(const std::uint8_t* in, const std::int32_t* weights, int number, int bytes,
              std::int32_t* sums, std::uint8_t* out) {
  std::fill(sums, sums + bytes, kHalf);
  for (int k = 0; k < number; ++k, in += bytes) {
    std::int32_t w = weights[k];
    for (int i = 0; i < bytes; ++i) sums[i] += w * in[i];
  }
  for (int i = 0; i < bytes; ++i) out[i] = clip(sums[i]);
}

bool is_identity(const Axis& axis) {
  return axis.from == 0 && static_cast<std::int64_t>(axis.size) == axis.out &&
         axis.to == static_cast<float>(axis.size);
}

/// The wanted columns of the source rows top..top+rows-1.
std::vector<std::uint8_t> scale_columns(const ImageView& source, const Axis& axis, int top,
                                        int rows) {
  std::size_t bytes = static_cast<std::size_t>(axis.count) * kChannels;
  std::vector<std::uint8_t> result(bytes * static_cast<std::size_t>(rows));
  if (!is_identity(axis)) {
    scale_rows(source, make_weights(axis), top, rows, result.data());
    return result;
  }
  for (int y = 0; y < rows; ++y) {
    std::memcpy(result.data() + bytes * static_cast<std::size_t>(y),
                source.row(top + y) + axis.first * kChannels, bytes);
  }
  return result;
}

Image scale(const ImageView& source, const Axis& across, const Axis& down) {
  CONVOY_CHECK(source.width > 0 && source.height > 0 && across.count > 0 && down.count > 0,
               "resize: {} x {} pixels to {} x {}, sides of at least 1 expected", source.width,
               source.height, across.count, down.count);
  ResizeWeights weights = make_weights(down);
  int top = weights.first.front();
  int rows = weights.first.back() + weights.number.back() - top;
  std::vector<std::uint8_t> wide = scale_columns(source, across, top, rows);
  int bytes = across.count * kChannels;
  Image result{across.count, down.count, {}, false};
  result.pixels.resize(static_cast<std::size_t>(bytes) * down.count);
  std::vector<std::int32_t> sums(static_cast<std::size_t>(bytes));
  for (int y = 0; y < down.count; ++y) {
    add_rows(wide.data() + static_cast<std::int64_t>(weights.first[y] - top) * bytes, weights.of(y),
             weights.number[y], bytes, sums.data(),
             result.pixels.data() + static_cast<std::int64_t>(y) * bytes);
  }
  return result;
}

}  // namespace

Image resize(const ImageView& source, int width, int height, const ResizeBox& box) {
  CONVOY_CHECK(box.left >= 0 && box.top >= 0 && box.left < box.right && box.top < box.bottom &&
                   box.right <= static_cast<float>(source.width) &&
                   box.bottom <= static_cast<float>(source.height),
               "resize: box ({}, {}, {}, {}) of {} x {} pixels, a part of the image expected",
               box.left, box.top, box.right, box.bottom, source.width, source.height);
  return scale(source, {source.width, box.left, box.right, width, 0, width},
               {source.height, box.top, box.bottom, height, 0, height});
}

Image resize(const ImageView& source, int width, int height) {
  return resize_window(source, {width, height}, {0, 0, width, height});
}

Image resize_window(const ImageView& source, const Extent& full, const ResizeWindow& window) {
  CONVOY_CHECK(window.x >= 0 && window.y >= 0 && window.x + window.width <= full.width &&
                   window.y + window.height <= full.height,
               "resize: window of {} x {} at ({}, {}), a part of {} x {} expected", window.width,
               window.height, window.x, window.y, full.width, full.height);
  return scale(
      source,
      {source.width, 0, static_cast<float>(source.width), full.width, window.x, window.width},
      {source.height, 0, static_cast<float>(source.height), full.height, window.y, window.height});
}

}  // namespace convoy
