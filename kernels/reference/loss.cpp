// Losses with their gradients in one pass. The gradient may be left out, for evaluation.
#include <algorithm>
#include <cmath>

#include "kernels/reference/common.h"
#include "kernels/reference/reference.h"

namespace convoy::reference {
namespace {

void check_label(const CrossEntropyShape& shape, std::int64_t row, std::int64_t label) {
  if (label >= 0 && label < shape.classes) return;
  CONVOY_FAIL(data, "softmax_cross_entropy: label {} of row {} is not in 0..{}", label, row,
              shape.classes - 1);
}

// The logarithm of the sum of exp(logits), safe for large ones.
template <class T>
double log_sum_exp(const T* logits, std::int64_t classes) {
  const double largest = *std::max_element(logits, logits + classes);
  double sum = 0;
  for (std::int64_t i = 0; i < classes; ++i) sum += std::exp(logits[i] - largest);
  return largest + std::log(sum);
}

// Loss of one row: the cross-entropy between softmax and the smoothed label.
template <class T>
double row_loss(const CrossEntropyShape& shape, const T* logits, std::int64_t label, T* dlogits) {
  const double total = log_sum_exp(logits, shape.classes);
  const double rest = shape.label_smoothing / static_cast<double>(shape.classes);
  double loss = 0;
  for (std::int64_t i = 0; i < shape.classes; ++i) {
    const double log_p = logits[i] - total;
    const double wanted = (i == label ? 1 - shape.label_smoothing : 0) + rest;
    if (wanted != 0) loss -= wanted * log_p;
    if (dlogits) dlogits[i] = static_cast<T>(shape.scale * (std::exp(log_p) - wanted));
  }
  return loss;
}

template <class T>
void cross_entropy(const CrossEntropyShape& shape, const T* logits, const std::int64_t* labels,
                   Buffer loss, T* dlogits) {
  double sum = 0;
  for (std::int64_t row = 0; row < shape.rows; ++row) {
    check_label(shape, row, labels[row]);
    const std::int64_t first = row * shape.classes;
    sum += row_loss(shape, logits + first, labels[row], dlogits ? dlogits + first : nullptr);
  }
  store(loss, 0, sum * shape.scale);
}

template <class T>
void squared_error(std::int64_t count, double scale, const T* x, const T* target, Buffer loss,
                   T* dx) {
  double sum = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const double difference = double(x[i]) - target[i];
    sum += difference * difference;
    if (dx) dx[i] = static_cast<T>(2 * scale * difference);
  }
  store(loss, 0, sum * scale);
}

}  // namespace

void softmax_cross_entropy(Stream& stream, const CrossEntropyShape& shape, ConstBuffer logits,
                           ConstBuffer labels, Buffer loss, Buffer dlogits) {
  constexpr const char* kName = "softmax_cross_entropy";
  check_is(kName, "labels", labels, DType::i64);
  with_type(kName, common_dtype(kName, {loss}), [](auto) {});
  with_type(kName, common_dtype(kName, {logits, dlogits}), [&]<class T>(T) {
    host(stream).submit([=] {
      cross_entropy(shape, logits.as<T>(), labels.as<std::int64_t>(), loss, dlogits.as<T>());
    });
  });
}

void mse(Stream& stream, std::int64_t count, double scale, ConstBuffer x, ConstBuffer target,
         Buffer loss, Buffer dx) {
  with_type("mse", common_dtype("mse", {loss}), [](auto) {});
  with_type("mse", common_dtype("mse", {x, target, dx}), [&]<class T>(T) {
    host(stream).submit(
        [=] { squared_error(count, scale, x.as<T>(), target.as<T>(), loss, dx.as<T>()); });
  });
}

}  // namespace convoy::reference
