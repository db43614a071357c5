// Sums over one axis of (outer, reduced, inner), the reverse, and sums of squares.
#include "kernels/reference/common.h"
#include "kernels/reference/reference.h"

namespace convoy::reference {
namespace {

template <class T>
void sum(const ReduceShape& shape, double scale, const T* x, T* y) {
  for (std::int64_t outer = 0; outer < shape.outer; ++outer) {
    for (std::int64_t inner = 0; inner < shape.inner; ++inner) {
      const T* first = x + outer * shape.reduced * shape.inner + inner;
      double total = 0;
      for (std::int64_t i = 0; i < shape.reduced; ++i) total += first[i * shape.inner];
      y[outer * shape.inner + inner] = static_cast<T>(scale * total);
    }
  }
}

template <class T>
void spread(const ReduceShape& shape, double scale, const T* x, T* y) {
  for (std::int64_t outer = 0; outer < shape.outer; ++outer) {
    for (std::int64_t i = 0; i < shape.reduced; ++i, y += shape.inner) {
      for (std::int64_t inner = 0; inner < shape.inner; ++inner) {
        y[inner] = static_cast<T>(scale * x[outer * shape.inner + inner]);
      }
    }
  }
}

double squares(ConstBuffer x, std::int64_t count) {
  double total = 0;
  for (std::int64_t i = 0; i < count; ++i) total += load(x, i) * load(x, i);
  return total;
}

}  // namespace

void reduce_sum(Stream& stream, const ReduceShape& shape, double scale, ConstBuffer x, Buffer y) {
  with_type("reduce_sum", common_dtype("reduce_sum", {x, y}), [&]<class T>(T) {
    host(stream).submit([=] { sum(shape, scale, x.as<T>(), y.as<T>()); });
  });
}

void broadcast(Stream& stream, const ReduceShape& shape, double scale, ConstBuffer x, Buffer y) {
  with_type("broadcast", common_dtype("broadcast", {x, y}), [&]<class T>(T) {
    host(stream).submit([=] { spread(shape, scale, x.as<T>(), y.as<T>()); });
  });
}

void sum_of_squares(Stream& stream, const std::vector<ConstBuffer>& x,
                    const std::vector<std::int64_t>& counts, Buffer result) {
  constexpr const char* kName = "sum_of_squares";
  CONVOY_DCHECK(x.size() == counts.size(), "{}: {} buffers and {} counts", kName, x.size(),
                counts.size());
  check_is(kName, "result", result, DType::f64);
  for (ConstBuffer buffer : x) with_type(kName, common_dtype(kName, {buffer}), [](auto) {});
  host(stream).submit([x, counts, result] {
    for (std::size_t i = 0; i < x.size(); ++i) result.as<double>()[i] = squares(x[i], counts[i]);
  });
}

}  // namespace convoy::reference
