#include "kernels/cpu/peak.h"

#include <algorithm>
#include <chrono>

#include "kernels/cpu/isa.h"

namespace convoy::cpu {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Operations of all threads in one go of a few milliseconds. The factors come from memory that the
// compiler must not look through, else it would compute the result itself.
double run_all() {
  constexpr std::int64_t kRounds = 1 << 20;
  volatile float factor = 0.5f, summand = 1.0f;
  double operations = 0;
#pragma omp parallel reduction(+ : operations)
  {
    float result = 0;
    operations += loops().multiply_add(kRounds, factor, summand, &result);
    volatile float kept = result;
    static_cast<void>(kept);
  }
  return operations;
}

}  // namespace

double measure_peak() {
  constexpr double kSeconds = 0.1;
  const Clock::time_point start = Clock::now();
  double best = 0;
  do {
    const Clock::time_point begin = Clock::now();
    const double operations = run_all();
    best = std::max(best, operations / seconds_since(begin));
  } while (seconds_since(start) < kSeconds);
  return best;
}

}  // namespace convoy::cpu
