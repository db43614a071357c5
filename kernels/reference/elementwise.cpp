// Elementwise functions by the formulas of elementwise_list.h, in double; fill and scale.
#include "kernels/elementwise.h"

#include <algorithm>

#include "kernels/reference/common.h"
#include "kernels/reference/reference.h"

namespace convoy::reference {

void unary_forward(Stream& stream, Unary op, std::int64_t count, ConstBuffer x, Buffer y) {
  with_type("unary_forward", common_dtype("unary_forward", {x, y}), [&]<class T>(T) {
    with_formula(op, [&]<class Formula>(Formula) {
      host(stream).submit([=, in = x.as<T>(), out = y.as<T>()] {
        for (std::int64_t i = 0; i < count; ++i) {
          out[i] = static_cast<T>(Formula::value(double(in[i])));
        }
      });
    });
  });
}

void unary_backward(Stream& stream, Unary op, std::int64_t count, ConstBuffer x, ConstBuffer y,
                    ConstBuffer dy, Buffer dx) {
  with_type("unary_backward", common_dtype("unary_backward", {x, y, dy, dx}), [&]<class T>(T) {
    with_formula(op, [&]<class Formula>(Formula) {
      host(stream).submit([=, x = x.as<T>(), y = y.as<T>(), dy = dy.as<T>(), dx = dx.as<T>()] {
        for (std::int64_t i = 0; i < count; ++i) {
          dx[i] = static_cast<T>(dy[i] * Formula::derivative(double(x[i]), double(y[i])));
        }
      });
    });
  });
}

void binary_forward(Stream& stream, Binary op, std::int64_t count, ConstBuffer a, ConstBuffer b,
                    Buffer y) {
  with_type("binary_forward", common_dtype("binary_forward", {a, b, y}), [&]<class T>(T) {
    with_formula(op, [&]<class Formula>(Formula) {
      host(stream).submit([=, a = a.as<T>(), b = b.as<T>(), y = y.as<T>()] {
        for (std::int64_t i = 0; i < count; ++i) {
          y[i] = static_cast<T>(Formula::value(double(a[i]), double(b[i])));
        }
      });
    });
  });
}

void binary_backward(Stream& stream, Binary op, std::int64_t count, ConstBuffer a, ConstBuffer b,
                     ConstBuffer dy, Buffer da, Buffer db) {
  constexpr const char* kName = "binary_backward";
  with_type(kName, common_dtype(kName, {a, b, dy, da, db}), [&]<class T>(T) {
    with_formula(op, [&]<class Formula>(Formula) {
      host(stream).submit([=, dy = dy.as<T>(), da = da.as<T>(), db = db.as<T>()] {
        for (std::int64_t i = 0; i < count; ++i) {
          const double a_value = load(a, i), b_value = load(b, i), gradient = dy[i];
          if (da) da[i] = static_cast<T>(gradient * Formula::by_a(a_value, b_value));
          if (db) db[i] = static_cast<T>(gradient * Formula::by_b(a_value, b_value));
        }
      });
    });
  });
}

void fill(Stream& stream, std::int64_t count, double value, Buffer x) {
  with_type("fill", common_dtype("fill", {x}), [&]<class T>(T) {
    host(stream).submit([=] { std::fill_n(x.as<T>(), count, static_cast<T>(value)); });
  });
}

void scale(Stream& stream, std::int64_t count, double factor, Buffer x) {
  with_type("scale", common_dtype("scale", {x}), [&]<class T>(T) {
    host(stream).submit([=, x = x.as<T>()] {
      for (std::int64_t i = 0; i < count; ++i) x[i] = static_cast<T>(x[i] * factor);
    });
  });
}

}  // namespace convoy::reference
