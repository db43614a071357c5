// Names of the elementwise functions, and their formulas once for all backends.
#pragma once

#include <cmath>
#include <utility>

#include "kernels/base/host_device.h"
#include "kernels/elementwise_list.h"

namespace convoy {

enum class Unary : int {
#define CONVOY_NAME(name, value, derivative) name,
  CONVOY_UNARY_LIST(CONVOY_NAME)
#undef CONVOY_NAME
};

enum class Binary : int {
#define CONVOY_NAME(name, value, by_a, by_b) name,
  CONVOY_BINARY_LIST(CONVOY_NAME)
#undef CONVOY_NAME
};

namespace elementwise {

#define CONVOY_FORMULA(name, value_of, derivative_of)                                    \
  struct name {                                                                          \
    template <class T>                                                                   \
    CONVOY_HOST_DEVICE static T value(T x) {                                             \
      return value_of;                                                                   \
    }                                                                                    \
    template <class T>                                                                   \
    CONVOY_HOST_DEVICE static T derivative([[maybe_unused]] T x, [[maybe_unused]] T y) { \
      return derivative_of;                                                              \
    }                                                                                    \
  };
CONVOY_UNARY_LIST(CONVOY_FORMULA)
#undef CONVOY_FORMULA

#define CONVOY_FORMULA(name, value_of, by_a_of, by_b_of)                           \
  struct name {                                                                    \
    template <class T>                                                             \
    CONVOY_HOST_DEVICE static T value(T a, T b) {                                  \
      return value_of;                                                             \
    }                                                                              \
    template <class T>                                                             \
    CONVOY_HOST_DEVICE static T by_a([[maybe_unused]] T a, [[maybe_unused]] T b) { \
      return by_a_of;                                                              \
    }                                                                              \
    template <class T>                                                             \
    CONVOY_HOST_DEVICE static T by_b([[maybe_unused]] T a, [[maybe_unused]] T b) { \
      return by_b_of;                                                              \
    }                                                                              \
  };
CONVOY_BINARY_LIST(CONVOY_FORMULA)
#undef CONVOY_FORMULA

}  // namespace elementwise

/// Calls `use` with an object of the formula's type, e.g. `use(elementwise::relu{})`.
template <class Use>
void with_formula(Unary op, Use&& use) {
  switch (op) {
#define CONVOY_CASE(name, value, derivative) \
  case Unary::name:                          \
    return std::forward<Use>(use)(elementwise::name{});
    CONVOY_UNARY_LIST(CONVOY_CASE)
#undef CONVOY_CASE
  }
}

template <class Use>
void with_formula(Binary op, Use&& use) {
  switch (op) {
#define CONVOY_CASE(name, value, by_a, by_b) \
  case Binary::name:                         \
    return std::forward<Use>(use)(elementwise::name{});
    CONVOY_BINARY_LIST(CONVOY_CASE)
#undef CONVOY_CASE
  }
}

}  // namespace convoy
