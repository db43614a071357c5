// The loops over bfloat16, and their table.
#include "kernels/cpu/vector/batch_norm_loops.h"
#include "kernels/cpu/vector/block_loops.h"
#include "kernels/cpu/vector/half_table.h"

namespace convoy::cpu::CONVOY_ISA {

CONVOY_BATCH_NORM_LOOPS(Half16)
CONVOY_BLOCK_LOOPS(Half16)

void widen(std::int64_t count, const Half16* x, float* y) {
  std::int64_t i = 0;
  for (; i + 2 * kRowLanes <= count; i += 2 * kRowLanes) {
    __builtin_prefetch(x + i + kAhead<Half16>);
    store(y + i, load(x + i));
    store(y + i + kRowLanes, load(x + i + kRowLanes));
  }
  for (; i < count; ++i) y[i] = to_float(x[i]);
}

void narrow(std::int64_t count, const float* x, Half16* y) {
  std::int64_t i = 0;
  for (; i + 2 * kRowLanes <= count; i += 2 * kRowLanes) {
    __builtin_prefetch(y + i + kAhead<Half16>, 1);
    store(y + i, load(x + i));
    store(y + i + kRowLanes, load(x + i + kRowLanes));
  }
  for (; i < count; ++i) store(y + i, x[i]);
}

#define CONVOY_INITIALISER(result, name, arguments) &name,
const HalfTable half_table = {CONVOY_HALF_LIST(CONVOY_INITIALISER)};
#undef CONVOY_INITIALISER

}  // namespace convoy::cpu::CONVOY_ISA
