// y = x with each column multiplied by its factor.
#include "kernels/reference/common.h"
#include "kernels/reference/reference.h"

namespace convoy::reference {

void row_scale_forward(Stream& stream, const RowScaleShape& shape, ConstBuffer x, ConstBuffer w,
                       Buffer y) {
  with_type("row_scale_forward", common_dtype("row_scale_forward", {x, w, y}), [&]<class T>(T) {
    host(stream).submit([=, x = x.as<T>(), w = w.as<T>(), y = y.as<T>()] {
      for (std::int64_t i = 0; i < shape.rows * shape.width; ++i) y[i] = x[i] * w[i % shape.width];
    });
  });
}

void row_scale_input_gradient(Stream& stream, const RowScaleShape& shape, ConstBuffer dy,
                              ConstBuffer w, Buffer dx) {
  row_scale_forward(stream, shape, dy, w, dx);
}

void row_scale_weight_gradient(Stream& stream, const RowScaleShape& shape, ConstBuffer x,
                               ConstBuffer dy, Buffer dw) {
  constexpr const char* kName = "row_scale_weight_gradient";
  with_type(kName, common_dtype(kName, {x, dy, dw}), [&]<class T>(T) {
    host(stream).submit([=, x = x.as<T>(), dy = dy.as<T>(), dw = dw.as<T>()] {
      for (std::int64_t c = 0; c < shape.width; ++c) {
        double sum = 0;
        for (std::int64_t r = 0; r < shape.rows; ++r) {
          sum += double(x[r * shape.width + c]) * dy[r * shape.width + c];
        }
        dw[c] = static_cast<T>(sum);
      }
    });
  });
}

}  // namespace convoy::reference
