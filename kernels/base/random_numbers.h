// Random numbers by the thousand, for initial values: those of Philox 4x32-10 at (seed, stream,
// place), drawn by the loops of the cpu backend and equal on all of its instruction sets.
#pragma once

#include <cstdint>

namespace convoy {

/// How bits become numbers.
enum class RandomKind {
  unit,       ///< uniform in [0, 1), 53 bits each
  symmetric,  ///< 2 * unit - 1
  normal,     ///< mean 0, deviation 1, by Box and Muller: two numbers of two
};

/// Numbers 0 ... count - 1 of the stream, each times `factor`, on the threads that OpenMP gives the
/// calling thread. T is float or double; all is computed in double.
template <class T>
void draw_numbers(std::uint64_t seed, std::uint64_t stream, RandomKind kind, double factor,
                  std::int64_t count, T* y);

}  // namespace convoy
