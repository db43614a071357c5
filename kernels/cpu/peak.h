// What the cores of a stream can compute at most.
#pragma once

namespace convoy::cpu {

/// Operations a second (a multiply-add is two) of the calling thread's OpenMP threads together:
/// the best of what a tenth of a second shows.
double measure_peak();

}  // namespace convoy::cpu
