// Atomics of CUDA on host atomics, relaxed as there. Each returns the value before.
#pragma once

#include <type_traits>

#include "kernels/emulator/machine.h"

namespace convoy::emulator {

// T is int, unsigned, long long or unsigned long long.
template <class T>
T atomicAdd(T* at, std::type_identity_t<T> value);
template <class T>
T atomicSub(T* at, std::type_identity_t<T> value);
template <class T>
T atomicExch(T* at, std::type_identity_t<T> value);
template <class T>
T atomicMin(T* at, std::type_identity_t<T> value);
template <class T>
T atomicMax(T* at, std::type_identity_t<T> value);
template <class T>
T atomicAnd(T* at, std::type_identity_t<T> value);
template <class T>
T atomicOr(T* at, std::type_identity_t<T> value);
template <class T>
T atomicXor(T* at, std::type_identity_t<T> value);
/// Writes `value` where `expected` is found.
template <class T>
T atomicCAS(T* at, std::type_identity_t<T> expected, std::type_identity_t<T> value);
/// Up to `most`, then 0.
unsigned atomicInc(unsigned* at, unsigned most);
/// Down to 0, then `most`.
unsigned atomicDec(unsigned* at, unsigned most);

// Sums of floats depend on the order of their terms: faults unless the machine's options allow
// them.
float atomicAdd(float* at, float value);
double atomicAdd(double* at, double value);

}  // namespace convoy::emulator
