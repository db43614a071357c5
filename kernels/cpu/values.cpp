#include "kernels/cpu/values.h"

namespace convoy::cpu {

void convert_values(std::int64_t count, ConstBuffer x, Buffer y) {
  parallel_parts(count, [=](std::int64_t, std::int64_t begin, std::int64_t size) {
    if (x.dtype == DType::bf16) {
      half_loops().widen(size, x.as<Half16>() + begin, y.as<float>() + begin);
    } else {
      half_loops().narrow(size, x.as<float>() + begin, y.as<Half16>() + begin);
    }
  });
}

}  // namespace convoy::cpu
