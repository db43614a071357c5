// y = x with each column multiplied by its factor: rows over the cores, then columns for dw.
#include "kernels/base/host_stream.h"
#include "kernels/cpu/checks.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/parallel.h"

namespace convoy::cpu {

void row_scale_forward(Stream& stream, const RowScaleShape& shape, ConstBuffer x, ConstBuffer w,
                       Buffer y) {
  require_f32("row_scale_forward", stream, {x, w, y});
  require_plain("row_scale_forward", {{"x", x}, {"w", w}, {"y", y}});
  host(stream).submit([=, x = x.as<float>(), w = w.as<float>(), y = y.as<float>()] {
    parallel_for(shape.rows, shape.width, [=](std::int64_t r) {
      const std::int64_t row = r * shape.width;
      for (std::int64_t c = 0; c < shape.width; ++c) y[row + c] = x[row + c] * w[c];
    });
  });
}

void row_scale_input_gradient(Stream& stream, const RowScaleShape& shape, ConstBuffer dy,
                              ConstBuffer w, Buffer dx) {
  row_scale_forward(stream, shape, dy, w, dx);
}

void row_scale_weight_gradient(Stream& stream, const RowScaleShape& shape, ConstBuffer x,
                               ConstBuffer dy, Buffer dw) {
  require_f32("row_scale_weight_gradient", stream, {x, dy, dw});
  require_plain("row_scale_weight_gradient", {{"x", x}, {"dy", dy}, {"dw", dw}});
  host(stream).submit([=, x = x.as<float>(), dy = dy.as<float>(), dw = dw.as<float>()] {
    parallel_for(shape.width, shape.rows, [=](std::int64_t c) {
      double sum = 0;
      for (std::int64_t r = 0; r < shape.rows; ++r) {
        sum += double(x[r * shape.width + c]) * dy[r * shape.width + c];
      }
      dw[c] = static_cast<float>(sum);
    });
  });
}

}  // namespace convoy::cpu
