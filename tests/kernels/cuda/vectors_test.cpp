// Vectors of 16 bytes: their tails, buffers that are not aligned to them, and every type.
#include <cmath>

#include "kernels/elementwise.h"
#include "tests/kernels/cuda/device_array.h"

namespace convoy::testing {
namespace {

const std::vector<std::int64_t> kCounts = {0, 1, 3, 8, 9, 67, 2051};
// Offsets of the operands in elements: all aligned, all in step but not aligned, out of step.
const std::vector<std::vector<int>> kOffsets = {
    {0, 0, 0, 0}, {1, 1, 1, 1}, {0, 0, 3, 0}, {8, 1, 0, 0}};

// Calls use(T(), count, offsets) for all of them.
template <class Use>
void with_all(Use use) {
  for (std::int64_t count : kCounts) {
    for (const std::vector<int>& offsets : kOffsets) {
      INFO(count << " values, offsets " << offsets[0] << offsets[1] << offsets[2] << offsets[3]);
      use(float(), count, offsets);
      use(double(), count, offsets);
      use(Bf16(), count, offsets);
    }
  }
}

template <class T, class Function>
std::vector<T> mapped(const std::vector<T>& from, Function function) {
  std::vector<T> result;
  for (T value : from) result.push_back(as<T>(function(number(value))));
  return result;
}

template <class From, class To>
void check_cast(std::int64_t count, int from_offset, int to_offset) {
  const DeviceArray<From> x(counting<From>(count), from_offset);
  const DeviceArray<To> y(count, to_offset);
  gpu_kernels().cast(gpu_stream(), count, x.buffer(), y.buffer());
  CHECK(y.values() == counting<To>(count));
}

template <class From>
void check_casts_from() {
  for (const auto& [count, from, to] :
       {std::array{67, 0, 0}, {67, 1, 0}, {67, 0, 3}, {1, 0, 0}, {0, 0, 0}}) {
    INFO(name(dtype_of<From>) << ", " << count << " values, offsets " << from << " and " << to);
    check_cast<From, float>(count, from, to);
    check_cast<From, double>(count, from, to);
    check_cast<From, Bf16>(count, from, to);
    check_cast<From, std::int64_t>(count, from, to);
    check_cast<From, std::int32_t>(count, from, to);
    check_cast<From, std::uint8_t>(count, from, to);
  }
}

}  // namespace

TEST_CASE("gpu fill and scale: any count at any address") {
  with_all([]<class T>(T, std::int64_t count, const std::vector<int>& offsets) {
    const DeviceArray<T> filled(count, offsets[1]);
    gpu_kernels().fill(gpu_stream(), count, -2.5, filled.buffer());
    CHECK(filled.values() == std::vector<T>(count, as<T>(-2.5)));
    const DeviceArray<T> scaled(counting<T>(count), offsets[2]);
    gpu_kernels().scale(gpu_stream(), count, -0.5, scaled.buffer());
    CHECK(scaled.values() == mapped(counting<T>(count), [](double x) { return -x / 2; }));
  });
}

TEST_CASE("gpu elementwise functions: any count at any address") {
  with_all([]<class T>(T, std::int64_t count, const std::vector<int>& offsets) {
    const std::vector<T> values = counting<T>(count, 11);
    const DeviceArray<T> a(values, offsets[0]), b(values, offsets[1]), dy(values, offsets[2]);
    const DeviceArray<T> y(count, offsets[3]), da(count, offsets[3]), db(count, offsets[2]);
    gpu_kernels().unary_forward(gpu_stream(), Unary::square, count, a.buffer(), y.buffer());
    CHECK(y.values() == mapped(values, [](double x) { return x * x; }));
    gpu_kernels().unary_backward(gpu_stream(), Unary::square, count, a.buffer(), y.buffer(),
                                 dy.buffer(), da.buffer());
    CHECK(da.values() == mapped(values, [](double x) { return 2 * x * x; }));
    gpu_kernels().binary_forward(gpu_stream(), Binary::add, count, a.buffer(), b.buffer(),
                                 y.buffer());
    CHECK(y.values() == mapped(values, [](double x) { return x + x; }));
    gpu_kernels().binary_backward(gpu_stream(), Binary::multiply, count, a.buffer(), b.buffer(),
                                  dy.buffer(), da.buffer(), db.buffer());
    CHECK(da.values() == mapped(values, [](double x) { return x * x; }));
    CHECK(db.values() == da.values());
  });
}

TEST_CASE("gpu mse: any count at any address") {
  with_all([]<class T>(T, std::int64_t count, const std::vector<int>& offsets) {
    const DeviceArray<T> x(counting<T>(count, 7), offsets[0]),
        target(counting<T>(count, 5), offsets[1]);
    const DeviceArray<T> dx(count, offsets[2]);
    const DeviceArray<float> loss(1);
    gpu_kernels().mse(gpu_stream(), count, 0.5, x.buffer(), target.buffer(), loss.buffer(),
                      dx.buffer());
    double sum = 0;
    std::vector<T> expected;
    for (std::int64_t i = 0; i < count; ++i) {
      const double difference = double(i % 7 - i % 5);
      sum += difference * difference;
      expected.push_back(as<T>(difference));
    }
    CHECK(loss.values() == std::vector<float>{static_cast<float>(sum / 2)});
    CHECK(dx.values() == expected);
  });
}

TEST_CASE("gpu cast: all pairs of types, any count at any address") {
  check_casts_from<float>();
  check_casts_from<double>();
  check_casts_from<Bf16>();
  check_casts_from<std::int64_t>();
  check_casts_from<std::int32_t>();
  check_casts_from<std::uint8_t>();
}

TEST_CASE("gpu cast: to bf16 rounds to nearest, ties to even; NaN stays NaN") {
  const std::vector<float> from = {1 + 1.0f / 256, 1 + 3.0f / 256, 1 + 1.01f / 256,
                                   -1e-40f,        3.4e38f,        std::nanf("")};
  const DeviceArray<float> x(from);
  const DeviceArray<Bf16> y(6);
  gpu_kernels().cast(gpu_stream(), 6, x.buffer(), y.buffer());
  const std::vector<Bf16> to = y.values();
  CHECK(float(to[0]) == 1);
  CHECK(float(to[1]) == 1 + 2.0f / 128);
  CHECK(float(to[2]) == 1 + 1.0f / 128);
  CHECK(to[3].bits == 0x8001);  // a denormal number stays one
  CHECK(std::isinf(float(to[4])));
  CHECK(std::isnan(float(to[5])));
}

}  // namespace convoy::testing
