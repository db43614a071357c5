// Elementwise loops. The formulas are those of elementwise_list.h, which say std::exp and std::tanh
// of T: here those names mean functions of this file, since <cmath>'s are shared inline functions.
#include "kernels/cpu/vector/lanes.h"
#include "kernels/elementwise_list.h"

namespace convoy::cpu::CONVOY_ISA {
namespace {

namespace std {  // found before ::std by the formulas below
CONVOY_INLINE float exp(float x) {
  return __builtin_expf(x);
}
CONVOY_INLINE float tanh(float x) {
  return __builtin_tanhf(x);
}
}  // namespace std

using T = float;

#define CONVOY_LOOP(name, value, derivative)                                       \
  void name##_value(::std::int64_t count, const float* in, float* out) {           \
    for (::std::int64_t i = 0; i < count; ++i) {                                   \
      const float x = in[i];                                                       \
      out[i] = value;                                                              \
    }                                                                              \
  }                                                                                \
  void name##_gradient(::std::int64_t count, const float* in, const float* result, \
                       const float* dy, float* dx) {                               \
    for (::std::int64_t i = 0; i < count; ++i) {                                   \
      [[maybe_unused]] const float x = in[i];                                      \
      [[maybe_unused]] const float y = result[i];                                  \
      dx[i] = dy[i] * (derivative);                                                \
    }                                                                              \
  }
CONVOY_UNARY_LIST(CONVOY_LOOP)
#undef CONVOY_LOOP

#define CONVOY_LOOP(name, value, by_a, by_b)                                                  \
  void name##_value(::std::int64_t count, const float* in_a, const float* in_b, float* out) { \
    for (::std::int64_t i = 0; i < count; ++i) {                                              \
      const float a = in_a[i], b = in_b[i];                                                   \
      out[i] = value;                                                                         \
    }                                                                                         \
  }                                                                                           \
  void name##_gradient(::std::int64_t count, const float* in_a, const float* in_b,            \
                       const float* dy, float* da, float* db) {                               \
    for (::std::int64_t i = 0; i < count; ++i) {                                              \
      [[maybe_unused]] const float a = in_a[i], b = in_b[i];                                  \
      const float d = dy[i];                                                                  \
      if (da) da[i] = d * (by_a);                                                             \
      if (db) db[i] = d * (by_b);                                                             \
    }                                                                                         \
  }
CONVOY_BINARY_LIST(CONVOY_LOOP)
#undef CONVOY_LOOP

#define CONVOY_POINTER(name, ...) &name##_value,
constexpr void (*kUnaryValues[])(::std::int64_t, const float*,
                                 float*) = {CONVOY_UNARY_LIST(CONVOY_POINTER)};
constexpr void (*kBinaryValues[])(::std::int64_t, const float*, const float*,
                                  float*) = {CONVOY_BINARY_LIST(CONVOY_POINTER)};
#undef CONVOY_POINTER
#define CONVOY_POINTER(name, ...) &name##_gradient,
constexpr void (*kUnaryGradients[])(::std::int64_t, const float*, const float*, const float*,
                                    float*) = {CONVOY_UNARY_LIST(CONVOY_POINTER)};
constexpr void (*kBinaryGradients[])(::std::int64_t, const float*, const float*, const float*,
                                     float*, float*) = {CONVOY_BINARY_LIST(CONVOY_POINTER)};
#undef CONVOY_POINTER

}  // namespace

void unary_forward(int op, ::std::int64_t count, const float* x, float* y) {
  kUnaryValues[op](count, x, y);
}

void unary_backward(int op, ::std::int64_t count, const float* x, const float* y, const float* dy,
                    float* dx) {
  kUnaryGradients[op](count, x, y, dy, dx);
}

void binary_forward(int op, ::std::int64_t count, const float* a, const float* b, float* y) {
  kBinaryValues[op](count, a, b, y);
}

void binary_backward(int op, ::std::int64_t count, const float* a, const float* b, const float* dy,
                     float* da, float* db) {
  kBinaryGradients[op](count, a, b, dy, da, db);
}

void fill(::std::int64_t count, float value, float* x) {
  for (::std::int64_t i = 0; i < count; ++i) x[i] = value;
}

void scale(::std::int64_t count, float factor, const float* x, float* y) {
  for (::std::int64_t i = 0; i < count; ++i) y[i] = x[i] * factor;
}

}  // namespace convoy::cpu::CONVOY_ISA
