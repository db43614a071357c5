// Optimizer steps over a range of one parameter. Their formulas are told in shapes.h.
#include "kernels/cpu/vector/lanes.h"

namespace convoy::cpu::CONVOY_ISA {

void sgd(std::int64_t count, const MomentumStep& step, const float* gradient, float* momentum,
         float* weight) {
  const MomentumStep s = step;
  if (!momentum) {
    for (std::int64_t i = 0; i < count; ++i) {
      const float g = gradient[i] * s.gradient_factor + s.decay * weight[i];
      weight[i] -= s.lr * g;
    }
    return;
  }
  if (s.first) {
    for (std::int64_t i = 0; i < count; ++i) {
      momentum[i] = gradient[i] * s.gradient_factor + s.decay * weight[i];
      weight[i] -= s.lr * (s.nesterov ? momentum[i] + s.momentum * momentum[i] : momentum[i]);
    }
    return;
  }
  for (std::int64_t i = 0; i < count; ++i) {
    const float g = gradient[i] * s.gradient_factor + s.decay * weight[i];
    momentum[i] = s.momentum * momentum[i] + s.keep * g;
    weight[i] -= s.lr * (s.nesterov ? g + s.momentum * momentum[i] : momentum[i]);
  }
}

// Here `gradient_factor` and `decay` hold the trust ratio already.
void lars(std::int64_t count, const MomentumStep& step, const float* gradient, float* momentum,
          float* weight) {
  const MomentumStep s = step;
  for (std::int64_t i = 0; i < count; ++i) {
    const float g = gradient[i] * s.gradient_factor + s.decay * weight[i];
    const float v = momentum ? s.momentum * momentum[i] + g : g;
    if (momentum) momentum[i] = v;
    weight[i] -= s.lr * (s.nesterov ? g + s.momentum * v : v);
  }
}

void adamw(std::int64_t count, const AdamwStep& step, const float* gradient, float* moment1,
           float* moment2, float* weight) {
  const AdamwStep s = step;
  for (std::int64_t i = 0; i < count; ++i) {
    const float g = gradient[i] * s.gradient_factor;
    const float m = s.beta1 * moment1[i] + s.keep1 * g;
    const float v = s.beta2 * moment2[i] + s.keep2 * (g * g);
    moment1[i] = m;
    moment2[i] = v;
    const float deviation = __builtin_sqrtf(v) * s.correction2 + s.epsilon;
    weight[i] = weight[i] * s.shrink - s.rate * (m / deviation);
  }
}

}  // namespace convoy::cpu::CONVOY_ISA
