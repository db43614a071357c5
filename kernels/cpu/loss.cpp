// Softmax cross-entropy and mean squared error. Rows and losses are summed in double, in order.
#include <algorithm>
#include <cmath>

#include "kernels/base/error.h"
#include "kernels/base/host_stream.h"
#include "kernels/cpu/checks.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/staging.h"
#include "kernels/cpu/values.h"

namespace convoy::cpu {
namespace {

void check_labels(const CrossEntropyShape& shape, const std::int64_t* labels) {
  for (std::int64_t row = 0; row < shape.rows; ++row) {
    if (labels[row] >= 0 && labels[row] < shape.classes) continue;
    CONVOY_FAIL(data, "softmax_cross_entropy: label {} of row {}, expected 0..{}", labels[row], row,
                shape.classes - 1);
  }
}

/// log(sum(exp(x))) with the largest value taken out; NaN and infinities come through.
double log_sum_exp(const float* x, std::int64_t count) {
  float largest = x[0];
  for (std::int64_t i = 1; i < count; ++i) largest = std::max(largest, x[i]);
  double sum = 0;
  for (std::int64_t i = 0; i < count; ++i) sum += std::exp(static_cast<double>(x[i]) - largest);
  return largest + std::log(sum);
}

// loss = (1 - s) * (L - x[label]) + s / classes * sum(L - x), with L = log_sum_exp.
double row_loss(const CrossEntropyShape& shape, const float* x, std::int64_t label, float* dx) {
  const double level = log_sum_exp(x, shape.classes);
  const double smooth = shape.label_smoothing / static_cast<double>(shape.classes);
  double loss = (1 - shape.label_smoothing) * (level - x[label]);
  if (smooth != 0) {
    for (std::int64_t i = 0; i < shape.classes; ++i) loss += smooth * (level - x[i]);
  }
  if (!dx) return loss;
  for (std::int64_t i = 0; i < shape.classes; ++i) {
    const double target = smooth + (i == label ? 1 - shape.label_smoothing : 0);
    dx[i] = static_cast<float>((std::exp(x[i] - level) - target) * shape.scale);
  }
  return loss;
}

double sum_in_order(const double* parts, std::int64_t count) {
  double sum = 0;
  for (std::int64_t i = 0; i < count; ++i) sum += parts[i];
  return sum;
}

void write_loss(Buffer loss, double value) {
  if (loss.dtype == DType::f64) {
    *loss.as<double>() = value;
  } else {
    *loss.as<float>() = static_cast<float>(value);
  }
}

std::size_t bytes_of_parts(std::int64_t count) {
  return static_cast<std::size_t>(count) * sizeof(double);
}

}  // namespace

void softmax_cross_entropy(Stream& stream, const CrossEntropyShape& shape, ConstBuffer logits,
                           ConstBuffer labels, Buffer loss, Buffer dlogits) {
  require_values("softmax_cross_entropy", stream, {logits, dlogits});
  require_plain("softmax_cross_entropy", {{"logits", logits}, {"dlogits", dlogits}});
  require_type("softmax_cross_entropy", DType::i64, {{"labels", labels}});
  require_statistics("softmax_cross_entropy", {{"loss", loss}});
  const Shape all = {shape.rows, shape.classes};
  Staging staging(stream, kPlain, {{all, logits}, {all, dlogits}}, bytes_of_parts(shape.rows));
  const float* in = staging.input(all, logits);
  float* out = staging.output(all, dlogits);
  auto* losses = static_cast<double*>(staging.own());
  host(stream).submit([=] {
    const auto* label = labels.as<std::int64_t>();
    check_labels(shape, label);
    // An exponential costs as much as some ten plain elements.
    parallel_for(shape.rows, shape.classes * 10, [&](std::int64_t row) {
      const std::int64_t begin = row * shape.classes;
      losses[row] = row_loss(shape, in + begin, label[row], out ? out + begin : nullptr);
    });
    write_loss(loss, sum_in_order(losses, shape.rows) * shape.scale);
  });
  staging.finish();
}

void mse(Stream& stream, std::int64_t count, double scale, ConstBuffer x, ConstBuffer target,
         Buffer loss, Buffer dx) {
  require_values("mse", stream, {x, target, dx});
  require_statistics("mse", {{"loss", loss}});
  const Shape all = {count};
  Staging staging(stream, kPlain, {{all, x}, {all, target}, {all, dx}},
                  bytes_of_parts(parts_of(count)));
  const float *in = staging.input(all, x), *wanted = staging.input(all, target);
  float* out = staging.output(all, dx);
  auto* parts = static_cast<double*>(staging.own());
  host(stream).submit([=] {
    parallel_parts(count, [&](std::int64_t part, std::int64_t begin, std::int64_t size) {
      parts[part] = loops().mse(size, in + begin, wanted + begin, static_cast<float>(2 * scale),
                                out ? out + begin : nullptr);
    });
    write_loss(loss, sum_in_order(parts, parts_of(count)) * scale);
  });
  staging.finish();
}

}  // namespace convoy::cpu
