// Batch norm in pieces over x (n, c, spatial). Statistics are two passes: the mean first, then the
// squares of what is left; E[x^2] - mean^2 would lose all digits of a channel far from zero.
#include <cmath>

#include "kernels/reference/common.h"
#include "kernels/reference/reference.h"

namespace convoy::reference {
namespace {

// Calls use(channel, index) for all elements, channel by channel.
template <class Use>
void for_channel(const BatchNormShape& shape, std::int64_t c, Use use) {
  for (std::int64_t n = 0; n < shape.n; ++n) {
    const std::int64_t first = (n * shape.c + c) * shape.spatial;
    for (std::int64_t i = first; i < first + shape.spatial; ++i) use(i);
  }
}

double count_of(const BatchNormStatistics& statistics) {
  return statistics.device_count ? *statistics.device_count.as<double>() : statistics.count;
}

// The two numbers that normalise one channel.
struct Normal {
  Normal(const BatchNormStatistics& statistics, double epsilon, std::int64_t c)
      : mean(load(statistics.mean, c)),
        rstd(1 / std::sqrt(load(statistics.m2, c) / count_of(statistics) + epsilon)) {}
  double mean, rstd;
};

// Gradient before the ReLU. NaN passes, as in the elementwise ReLU.
template <class T>
double before_relu(bool relu, const T* y, const T* dy, std::int64_t i) {
  return relu && y[i] <= 0 ? 0 : dy[i];
}

template <class T>
void statistics_of(const BatchNormShape& shape, const T* x, double* mean, double* m2) {
  const double count = static_cast<double>(shape.n * shape.spatial);
  for (std::int64_t c = 0; c < shape.c; ++c) {
    double sum = 0, squares = 0;
    for_channel(shape, c, [&](std::int64_t i) { sum += x[i]; });
    const double centre = count > 0 ? sum / count : 0;
    for_channel(shape, c, [&](std::int64_t i) { squares += (x[i] - centre) * (x[i] - centre); });
    mean[c] = centre;
    m2[c] = squares;
  }
}

void merge(std::int64_t channels, const double* part, double* total) {
  const double count = total[2 * channels], part_count = part[2 * channels];
  if (part_count == 0) return;
  const double sum = count + part_count;
  double *mean = total, *m2 = total + channels;
  for (std::int64_t c = 0; c < channels; ++c) {
    const double part_mean = part[c], part_m2 = part[channels + c];
    const double delta = part_mean - mean[c];
    // With count 0 what mean and m2 hold is nobody's.
    mean[c] = count == 0 ? part_mean : mean[c] + delta * part_count / sum;
    m2[c] = count == 0 ? part_m2 : m2[c] + part_m2 + delta * delta * count * part_count / sum;
  }
  total[2 * channels] = sum;
}

void update(std::int64_t channels, const BatchNormStatistics& batch, double momentum,
            Buffer running_mean, Buffer running_var) {
  const double count = count_of(batch);
  if (count == 0) return;
  auto move = [=](Buffer running, std::int64_t c, double value) {
    store(running, c, (1 - momentum) * load(running, c) + momentum * value);
  };
  for (std::int64_t c = 0; c < channels; ++c) {
    move(running_mean, c, load(batch.mean, c));
    move(running_var, c, load(batch.m2, c) / (count - 1));
  }
}

template <class T>
struct Operands {
  const T* x;
  const T* y;
  const T* dy;
  const T* gamma;
};

template <class T>
void apply(const BatchNormShape& shape, const T* x, const BatchNormStatistics& statistics,
           double epsilon, const T* gamma, const T* beta, const T* residual, bool relu, T* y) {
  for (std::int64_t c = 0; c < shape.c; ++c) {
    const Normal normal(statistics, epsilon, c);
    for_channel(shape, c, [&](std::int64_t i) {
      double value = gamma[c] * ((x[i] - normal.mean) * normal.rstd) + beta[c];
      if (residual) value += residual[i];
      y[i] = static_cast<T>(relu && value < 0 ? 0 : value);
    });
  }
}

template <class T>
void backward_reduce(const BatchNormShape& shape, const Operands<T>& in,
                     const BatchNormStatistics& statistics, double epsilon, bool relu,
                     double* sum_dz, double* sum_dz_xhat) {
  for (std::int64_t c = 0; c < shape.c; ++c) {
    const Normal normal(statistics, epsilon, c);
    double sum = 0, sum_xhat = 0;
    for_channel(shape, c, [&](std::int64_t i) {
      const double dz = before_relu(relu, in.y, in.dy, i);
      sum += dz;
      sum_xhat += dz * ((in.x[i] - normal.mean) * normal.rstd);
    });
    sum_dz[c] = sum;
    sum_dz_xhat[c] = sum_xhat;
  }
}

template <class T>
void backward_apply(const BatchNormShape& shape, const Operands<T>& in,
                    const BatchNormStatistics& statistics, double epsilon, bool relu,
                    const double* sum_dz, const double* sum_dz_xhat, T* dx, T* dresidual) {
  const double count = count_of(statistics);
  for (std::int64_t c = 0; c < shape.c; ++c) {
    const Normal normal(statistics, epsilon, c);
    const double mean_dz = sum_dz ? sum_dz[c] / count : 0;
    const double mean_dz_xhat = sum_dz_xhat ? sum_dz_xhat[c] / count : 0;
    for_channel(shape, c, [&](std::int64_t i) {
      const double dz = before_relu(relu, in.y, in.dy, i);
      const double xhat = (in.x[i] - normal.mean) * normal.rstd;
      if (dresidual) dresidual[i] = static_cast<T>(dz);
      dx[i] = static_cast<T>(in.gamma[c] * normal.rstd * (dz - mean_dz - xhat * mean_dz_xhat));
    });
  }
}

// Statistics may be f32 too: running statistics are kept in the network's dtype.
void check_statistics(const char* kernel, const BatchNormStatistics& statistics) {
  with_type(kernel, common_dtype(kernel, {statistics.mean, statistics.m2}), [](auto) {});
}

}  // namespace

void batch_norm_statistics(Stream& stream, const BatchNormShape& shape, ConstBuffer x, Buffer mean,
                           Buffer m2) {
  constexpr const char* kName = "batch_norm_statistics";
  check_is(kName, "mean", mean, DType::f64);
  check_is(kName, "m2", m2, DType::f64);
  with_type(kName, common_dtype(kName, {x}), [&]<class T>(T) {
    host(stream).submit(
        [=] { statistics_of(shape, x.as<T>(), mean.as<double>(), m2.as<double>()); });
  });
}

void batch_norm_merge(Stream& stream, const PackedStatistics& packed, std::int64_t parts,
                      ConstBuffer from, Buffer total) {
  constexpr const char* kName = "batch_norm_merge";
  check_is(kName, "the parts", from, DType::f64);
  check_is(kName, "the total", total, DType::f64);
  host(stream).submit([=] {
    for (std::int64_t i = 0; i < parts; ++i) {
      merge(packed.channels, from.as<double>() + i * packed.values(), total.as<double>());
    }
    CONVOY_CHECK(total.as<double>()[2 * packed.channels] != 1,
                 "batch_norm: 1 value per channel in training, over all replicas");
  });
}

void batch_norm_update(Stream& stream, std::int64_t channels, const BatchNormStatistics& batch,
                       double momentum, Buffer running_mean, Buffer running_var) {
  constexpr const char* kName = "batch_norm_update";
  check_statistics(kName, batch);
  check_statistics(kName, {running_mean, running_var});
  host(stream).submit([=] { update(channels, batch, momentum, running_mean, running_var); });
}

std::size_t batch_norm_mask_bytes(const BatchNormShape&, LayoutId, DType) {
  return 0;
}

void batch_norm_apply(Stream& stream, const BatchNormShape& shape, ConstBuffer x,
                      const BatchNormStatistics& statistics, double epsilon, ConstBuffer gamma,
                      ConstBuffer beta, ConstBuffer residual, bool relu, Buffer y, Buffer) {
  constexpr const char* kName = "batch_norm_apply";
  check_statistics(kName, statistics);
  with_type(kName, common_dtype(kName, {x, gamma, beta, residual, y}), [&]<class T>(T) {
    host(stream).submit([=] {
      apply(shape, x.as<T>(), statistics, epsilon, gamma.as<T>(), beta.as<T>(), residual.as<T>(),
            relu, y.as<T>());
    });
  });
}

void batch_norm_backward_reduce(Stream& stream, const BatchNormShape& shape, ConstBuffer x,
                                ConstBuffer y, ConstBuffer, ConstBuffer dy,
                                const BatchNormStatistics& statistics, double epsilon, bool relu,
                                Buffer sum_dz, Buffer sum_dz_xhat) {
  constexpr const char* kName = "batch_norm_backward_reduce";
  check_statistics(kName, statistics);
  check_is(kName, "sum_dz", sum_dz, DType::f64);
  check_is(kName, "sum_dz_xhat", sum_dz_xhat, DType::f64);
  with_type(kName, common_dtype(kName, {x, y, dy}), [&]<class T>(T) {
    const Operands<T> in{x.as<T>(), y.as<T>(), dy.as<T>(), nullptr};
    host(stream).submit([=] {
      backward_reduce(shape, in, statistics, epsilon, relu, sum_dz.as<double>(),
                      sum_dz_xhat.as<double>());
    });
  });
}

void batch_norm_backward_apply(Stream& stream, const BatchNormShape& shape, ConstBuffer x,
                               ConstBuffer y, ConstBuffer, ConstBuffer dy,
                               const BatchNormStatistics& statistics, double epsilon, bool relu,
                               ConstBuffer gamma, ConstBuffer sum_dz, ConstBuffer sum_dz_xhat,
                               Buffer dx, Buffer dresidual) {
  constexpr const char* kName = "batch_norm_backward_apply";
  check_statistics(kName, statistics);
  CONVOY_DCHECK(bool(sum_dz) == bool(sum_dz_xhat), "{}: one of two sums is left out", kName);
  if (sum_dz) check_is(kName, "sum_dz", sum_dz, DType::f64);
  if (sum_dz_xhat) check_is(kName, "sum_dz_xhat", sum_dz_xhat, DType::f64);
  with_type(kName, common_dtype(kName, {x, y, dy, gamma, dx, dresidual}), [&]<class T>(T) {
    const Operands<T> in{x.as<T>(), y.as<T>(), dy.as<T>(), gamma.as<T>()};
    host(stream).submit([=] {
      backward_apply(shape, in, statistics, epsilon, relu, sum_dz.as<double>(),
                     sum_dz_xhat.as<double>(), dx.as<T>(), dresidual.as<T>());
    });
  });
}

}  // namespace convoy::reference
