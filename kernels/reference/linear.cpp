// y = x w^T + b and its gradients, each one product.
#include "kernels/reference/common.h"
#include "kernels/reference/product.h"
#include "kernels/reference/reference.h"

namespace convoy::reference {
namespace {

template <class T>
void forward(const LinearShape& shape, const T* x, const T* w, const T* b, T* y) {
  product(
      shape.out, shape.rows, shape.in,
      [=](std::int64_t o, std::int64_t i) { return w[o * shape.in + i]; },
      [=](std::int64_t i, std::int64_t row) { return x[row * shape.in + i]; },
      [=](std::int64_t o, std::int64_t row, double sum) {
        y[row * shape.out + o] = static_cast<T>(b ? sum + b[o] : sum);
      });
}

template <class T>
void input_gradient(const LinearShape& shape, const T* dy, const T* w, T* dx) {
  product(
      shape.in, shape.rows, shape.out,
      [=](std::int64_t i, std::int64_t o) { return w[o * shape.in + i]; },
      [=](std::int64_t o, std::int64_t row) { return dy[row * shape.out + o]; },
      [=](std::int64_t i, std::int64_t row, double sum) {
        dx[row * shape.in + i] = static_cast<T>(sum);
      });
}

template <class T>
void weight_gradient(const LinearShape& shape, const T* x, const T* dy, T* dw) {
  product(
      shape.out, shape.in, shape.rows,
      [=](std::int64_t o, std::int64_t row) { return dy[row * shape.out + o]; },
      [=](std::int64_t row, std::int64_t i) { return x[row * shape.in + i]; },
      [=](std::int64_t o, std::int64_t i, double sum) {
        dw[o * shape.in + i] = static_cast<T>(sum);
      });
}

template <class T>
void bias_gradient(const LinearShape& shape, const T* dy, T* db) {
  for (std::int64_t o = 0; o < shape.out; ++o) {
    double sum = 0;
    for (std::int64_t row = 0; row < shape.rows; ++row) sum += dy[row * shape.out + o];
    db[o] = static_cast<T>(sum);
  }
}

}  // namespace

void linear_forward(Stream& stream, const LinearShape& shape, ConstBuffer x, ConstBuffer w,
                    ConstBuffer b, Buffer y) {
  with_type("linear_forward", common_dtype("linear_forward", {x, w, b, y}), [&]<class T>(T) {
    host(stream).submit([=] { forward(shape, x.as<T>(), w.as<T>(), b.as<T>(), y.as<T>()); });
  });
}

void linear_input_gradient(Stream& stream, const LinearShape& shape, ConstBuffer dy, ConstBuffer w,
                           Buffer dx) {
  constexpr const char* kName = "linear_input_gradient";
  with_type(kName, common_dtype(kName, {dy, w, dx}), [&]<class T>(T) {
    host(stream).submit([=] { input_gradient(shape, dy.as<T>(), w.as<T>(), dx.as<T>()); });
  });
}

void linear_weight_gradient(Stream& stream, const LinearShape& shape, ConstBuffer x, ConstBuffer dy,
                            Buffer dw, Buffer db) {
  constexpr const char* kName = "linear_weight_gradient";
  with_type(kName, common_dtype(kName, {x, dy, dw, db}), [&]<class T>(T) {
    host(stream).submit([=] {
      weight_gradient(shape, x.as<T>(), dy.as<T>(), dw.as<T>());
      if (db) bias_gradient(shape, dy.as<T>(), db.as<T>());
    });
  });
}

}  // namespace convoy::reference
