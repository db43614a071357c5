#include "kernels/emulator/atomics.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>

namespace convoy::emulator {

using namespace machine;  // NOLINT(google-build-using-namespace)

namespace {

// `change` makes the new value of the old one.
template <class T, class Change>
T update(T* at, Change change, const void* code = __builtin_return_address(0)) {
  running_thread("an atomic");
  if (reinterpret_cast<std::uintptr_t>(at) % sizeof(T) != 0) {
    fault(cudaErrorMisalignedAddress,
          fmt::format("atomic on {} bytes at {}, not a multiple of that", sizeof(T),
                      static_cast<const void*>(at)));
  }
  checks::atomic(at, sizeof(T), code);
  const std::atomic_ref<T> value(*at);
  T before = value.load(std::memory_order_relaxed);
  while (!value.compare_exchange_weak(before, change(before), std::memory_order_relaxed)) {
  }
  return before;
}

template <class T>
T add_floats(T* at, T value) {
  running_thread("atomicAdd");
  if (!running_options().float_atomics) {
    fault(cudaErrorNotPermitted,
          "atomicAdd on a float: its sum depends on the order of the threads");
  }
  return update(at, [&](T before) { return before + value; });
}

// Sums wrap.
template <class T>
T plus(T a, T b) {
  using Bits = std::make_unsigned_t<T>;
  return static_cast<T>(static_cast<Bits>(a) + static_cast<Bits>(b));
}
template <class T>
T minus(T a, T b) {
  using Bits = std::make_unsigned_t<T>;
  return static_cast<T>(static_cast<Bits>(a) - static_cast<Bits>(b));
}

}  // namespace

#define CONVOY_ATOMIC(name, after)                         \
  template <class T>                                       \
  T name(T* at, std::type_identity_t<T> value) {           \
    return update(at, [&](T before) { return T(after); }); \
  }
CONVOY_ATOMIC(atomicAdd, plus(before, value))
CONVOY_ATOMIC(atomicSub, minus(before, value))
CONVOY_ATOMIC(atomicExch, (static_cast<void>(before), value))
CONVOY_ATOMIC(atomicMin, std::min(before, value))
CONVOY_ATOMIC(atomicMax, std::max(before, value))
CONVOY_ATOMIC(atomicAnd, before& value)
CONVOY_ATOMIC(atomicOr, before | value)
CONVOY_ATOMIC(atomicXor, before ^ value)
#undef CONVOY_ATOMIC

template <class T>
T atomicCAS(T* at, std::type_identity_t<T> expected, std::type_identity_t<T> value) {
  return update(at, [&](T before) { return before == expected ? value : before; });
}

unsigned atomicInc(unsigned* at, unsigned most) {
  return update(at, [&](unsigned before) { return before >= most ? 0 : before + 1; });
}

unsigned atomicDec(unsigned* at, unsigned most) {
  return update(at,
                [&](unsigned before) { return before == 0 || before > most ? most : before - 1; });
}

float atomicAdd(float* at, float value) {
  return add_floats(at, value);
}
double atomicAdd(double* at, double value) {
  return add_floats(at, value);
}

#define CONVOY_ATOMICS(T)          \
  template T atomicAdd<T>(T*, T);  \
  template T atomicSub<T>(T*, T);  \
  template T atomicExch<T>(T*, T); \
  template T atomicMin<T>(T*, T);  \
  template T atomicMax<T>(T*, T);  \
  template T atomicAnd<T>(T*, T);  \
  template T atomicOr<T>(T*, T);   \
  template T atomicXor<T>(T*, T);  \
  template T atomicCAS<T>(T*, T, T);
CONVOY_ATOMICS(int)
CONVOY_ATOMICS(unsigned)
CONVOY_ATOMICS(long long)
CONVOY_ATOMICS(unsigned long long)
#undef CONVOY_ATOMICS

}  // namespace convoy::emulator
