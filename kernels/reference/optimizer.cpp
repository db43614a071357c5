// Optimizer steps over all parameters of a network at once; formulas stand in shapes.h.
#include <cmath>

#include "kernels/reference/common.h"
#include "kernels/reference/reference.h"

namespace convoy::reference {
namespace {

template <class T>
void sgd(const OptimizerSlot& slot, const SgdArgs& args) {
  T* weight = slot.weight.as<T>();
  T* velocity = slot.state1.as<T>();
  const T* gradient = slot.gradient.as<T>();
  for (std::int64_t i = 0; i < slot.count; ++i) {
    const double w = weight[i];
    const double step = gradient[i] * args.gradient_scale + slot.weight_decay * w;
    double v = step;
    if (velocity) {
      if (!slot.first) v = args.momentum * velocity[i] + (1 - args.dampening) * step;
      velocity[i] = static_cast<T>(v);
    }
    weight[i] = static_cast<T>(w - args.lr * (args.nesterov ? step + args.momentum * v : v));
  }
}

template <class T>
double norm(const T* x, std::int64_t count) {
  double sum = 0;
  for (std::int64_t i = 0; i < count; ++i) sum += double(x[i]) * x[i];
  return std::sqrt(sum);
}

template <class T>
double trust_ratio(const OptimizerSlot& slot, const LarsArgs& args) {
  if (!slot.adapt) return 1;
  const double w = norm(slot.weight.as<T>(), slot.count);
  const double g = norm(slot.gradient.as<T>(), slot.count) * std::abs(args.gradient_scale);
  if (!(w > 0 && g > 0)) return 1;
  return args.trust * w / (g + slot.weight_decay * w + args.epsilon);
}

template <class T>
void lars(const OptimizerSlot& slot, const LarsArgs& args) {
  T* weight = slot.weight.as<T>();
  T* velocity = slot.state1.as<T>();
  const T* gradient = slot.gradient.as<T>();
  const double ratio = trust_ratio<T>(slot, args);
  for (std::int64_t i = 0; i < slot.count; ++i) {
    const double w = weight[i];
    const double step = ratio * (gradient[i] * args.gradient_scale + slot.weight_decay * w);
    double v = step;
    if (velocity) {
      v += args.momentum * velocity[i];
      velocity[i] = static_cast<T>(v);
    }
    weight[i] = static_cast<T>(w - args.lr * (args.nesterov ? step + args.momentum * v : v));
  }
}

template <class T>
void adamw(const OptimizerSlot& slot, const AdamwArgs& args) {
  T* weight = slot.weight.as<T>();
  T* first = slot.state1.as<T>();
  T* second = slot.state2.as<T>();
  const T* gradient = slot.gradient.as<T>();
  const double steps = static_cast<double>(args.step);
  const double correction1 = 1 - std::pow(args.beta1, steps);
  const double correction2 = std::sqrt(1 - std::pow(args.beta2, steps));
  for (std::int64_t i = 0; i < slot.count; ++i) {
    const double g = gradient[i] * args.gradient_scale;
    const double m = args.beta1 * first[i] + (1 - args.beta1) * g;
    const double v = args.beta2 * second[i] + (1 - args.beta2) * g * g;
    const double denominator = std::sqrt(v) / correction2 + args.epsilon;
    const double kept = weight[i] * (1 - args.lr * slot.weight_decay);
    first[i] = static_cast<T>(m);
    second[i] = static_cast<T>(v);
    weight[i] = static_cast<T>(kept - args.lr / correction1 * m / denominator);
  }
}

// Momentum needs memory; without it the state may be left out.
void check_slot(const char* kernel, const OptimizerSlot& slot, bool needs1, bool needs2) {
  CONVOY_DCHECK(slot.state1 || !needs1, "{}: state1 is left out", kernel);
  CONVOY_DCHECK(slot.state2 || !needs2, "{}: state2 is left out", kernel);
  const DType dtype = common_dtype(kernel, {slot.weight, slot.gradient, slot.state1, slot.state2});
  with_type(kernel, dtype, [](auto) {});
}

template <class Args, class Update>
void submit(Stream& stream, const char* kernel, const std::vector<OptimizerSlot>& slots,
            const Args& args, Update update) {
  host(stream).submit(
      [slots, args, update] {
        for (const OptimizerSlot& slot : slots) {
          with_type("optimizer", slot.weight.dtype, [&](auto zero) { update(slot, args, zero); });
        }
      },
      kernel);
}

}  // namespace

void sgd_update(Stream& stream, const std::vector<OptimizerSlot>& slots, const SgdArgs& args) {
  for (const OptimizerSlot& slot : slots) {
    check_slot("sgd_update", slot, args.momentum != 0, false);
  }
  submit(stream, "sgd_update", slots, args,
         []<class T>(const auto& slot, const auto& a, T) { sgd<T>(slot, a); });
}

void lars_update(Stream& stream, const std::vector<OptimizerSlot>& slots, const LarsArgs& args) {
  for (const OptimizerSlot& slot : slots) {
    check_slot("lars_update", slot, args.momentum != 0, false);
  }
  submit(stream, "lars_update", slots, args,
         []<class T>(const auto& slot, const auto& a, T) { lars<T>(slot, a); });
}

void adamw_update(Stream& stream, const std::vector<OptimizerSlot>& slots, const AdamwArgs& args) {
  for (const OptimizerSlot& slot : slots) check_slot("adamw_update", slot, true, true);
  submit(stream, "adamw_update", slots, args,
         []<class T>(const auto& slot, const auto& a, T) { adamw<T>(slot, a); });
}

}  // namespace convoy::reference
