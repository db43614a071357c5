// Elementwise functions, one line each: kernels, ops, gradients and their tests come from the
// lines.
//   CONVOY_UNARY(name, value of x, derivative in x and y): y = name(x)
//   CONVOY_BINARY(name, value of a and b, derivative by a, derivative by b)
// A formula is arithmetic on T, std::exp and std::tanh; any other function needs its line in
// kernels/cpu/vector/elementwise.cpp too.
// ReLU keeps NaN, and its gradient passes where not (y <= 0): a fmax would hide a numerics error.
#pragma once

#define CONVOY_UNARY_LIST(CONVOY_UNARY)                               \
  CONVOY_UNARY(relu, x < T(0) ? T(0) : x, !(y <= T(0)) ? T(1) : T(0)) \
  CONVOY_UNARY(sigmoid, T(1) / (T(1) + std::exp(-x)), y * (T(1) - y)) \
  CONVOY_UNARY(tanh, std::tanh(x), T(1) - y * y)                      \
  CONVOY_UNARY(square, x* x, T(2) * x)

#define CONVOY_BINARY_LIST(CONVOY_BINARY)     \
  CONVOY_BINARY(add, a + b, T(1), T(1))       \
  CONVOY_BINARY(subtract, a - b, T(1), T(-1)) \
  CONVOY_BINARY(multiply, a* b, b, a)
