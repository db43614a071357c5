#include "kernels/cuda/optimizer_checks.h"

#include "kernels/base/error.h"
#include "kernels/cuda/operands.h"

namespace convoy::CONVOY_GPU {

void check_squares(const std::vector<ConstBuffer>& x, const std::vector<std::int64_t>& counts,
                   ConstBuffer result) {
  constexpr const char* kName = "sum_of_squares";
  CONVOY_DCHECK(x.size() == counts.size(), "{}: {} buffers and {} counts", kName, x.size(),
                counts.size());
  check_is(kName, "result", result, DType::f64);
  for (const ConstBuffer& buffer : x) with_floating(kName, buffer.dtype, [](auto) {});
}

void check_slots(const char* kernel, const std::vector<OptimizerSlot>& slots, bool needs_state1,
                 bool needs_state2) {
  for (const OptimizerSlot& slot : slots) {
    CONVOY_DCHECK(slot.state1 || !needs_state1, "{}: state1 is left out", kernel);
    CONVOY_DCHECK(slot.state2 || !needs_state2, "{}: state2 is left out", kernel);
    const DType dtype =
        common_dtype(kernel, {slot.weight, slot.gradient, slot.state1, slot.state2});
    with_full(kernel, dtype, [](auto) {});
  }
}

}  // namespace convoy::CONVOY_GPU
