// SGD, LARS and AdamW over all parameters in one piece of queued work: every parameter is cut into
// parts of a fixed size, and the parts of all parameters are spread over the cores together.
#include <cmath>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/base/host_stream.h"
#include "kernels/cpu/checks.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/parallel.h"

namespace convoy::cpu {
namespace {

struct Part {
  std::size_t slot;
  std::int64_t begin, size;
};

std::vector<Part> cut(const std::vector<OptimizerSlot>& slots) {
  std::vector<Part> parts;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    for (std::int64_t begin = 0; begin < slots[i].count; begin += kPartElements) {
      parts.push_back({i, begin, std::min(kPartElements, slots[i].count - begin)});
    }
  }
  return parts;
}

void check_slots(const char* kernel, const Stream& stream,
                 const std::vector<OptimizerSlot>& slots) {
  for (const OptimizerSlot& slot : slots) {
    require_f32(kernel, stream, {slot.weight, slot.gradient, slot.state1, slot.state2});
    CONVOY_DCHECK(slot.weight.layout == slot.gradient.layout,
                  "{}: weight in layout {}, gradient in {}", kernel, slot.weight.layout,
                  slot.gradient.layout);
  }
}

template <class Work>
void for_each_part(const std::vector<Part>& parts, const Work& work) {
  parallel_for(static_cast<std::int64_t>(parts.size()), kPartElements, [&](std::int64_t i) {
    work(static_cast<std::size_t>(i), parts[static_cast<std::size_t>(i)]);
  });
}

float* at(Buffer buffer, std::int64_t begin) {
  return buffer ? buffer.as<float>() + begin : nullptr;
}

float narrow(double value) {
  return static_cast<float>(value);
}

struct Norms {
  double weight = 0, gradient = 0;
};

// Norms of each slot from sums of squares of its parts, added in order.
std::vector<Norms> norms_of(const std::vector<OptimizerSlot>& slots,
                            const std::vector<Part>& parts) {
  std::vector<Norms> squares(parts.size());
  for_each_part(parts, [&](std::size_t i, const Part& part) {
    const OptimizerSlot& slot = slots[part.slot];
    if (!slot.adapt) return;
    squares[i] = {loops().sum_of_squares(part.size, slot.weight.as<float>() + part.begin),
                  loops().sum_of_squares(part.size, slot.gradient.as<float>() + part.begin)};
  });
  std::vector<Norms> norms(slots.size());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    norms[parts[i].slot].weight += squares[i].weight;
    norms[parts[i].slot].gradient += squares[i].gradient;
  }
  for (Norms& norm : norms) norm = {std::sqrt(norm.weight), std::sqrt(norm.gradient)};
  return norms;
}

double trust_of(const OptimizerSlot& slot, const LarsArgs& args, const Norms& norms) {
  const double gradient = norms.gradient * std::abs(args.gradient_scale);
  if (!slot.adapt || !(norms.weight > 0) || !(gradient > 0)) return 1;
  return args.trust * norms.weight / (gradient + slot.weight_decay * norms.weight + args.epsilon);
}

}  // namespace

void sgd_update(Stream& stream, const std::vector<OptimizerSlot>& slots, const SgdArgs& args) {
  check_slots("sgd_update", stream, slots);
  for (const OptimizerSlot& slot : slots) {
    CONVOY_DCHECK(args.momentum == 0 || slot.state1, "sgd_update: momentum {} without its buffer",
                  args.momentum);
  }
  host(stream).submit([=, parts = cut(slots)] {
    for_each_part(parts, [&](std::size_t, const Part& part) {
      const OptimizerSlot& slot = slots[part.slot];
      const MomentumStep step = {narrow(args.lr),
                                 narrow(args.momentum),
                                 narrow(args.gradient_scale),
                                 narrow(slot.weight_decay),
                                 narrow(1 - args.dampening),
                                 args.nesterov,
                                 slot.first};
      loops().sgd(part.size, step, slot.gradient.as<float>() + part.begin,
                  args.momentum == 0 ? nullptr : at(slot.state1, part.begin),
                  at(slot.weight, part.begin));
    });
  });
}

void lars_update(Stream& stream, const std::vector<OptimizerSlot>& slots, const LarsArgs& args) {
  check_slots("lars_update", stream, slots);
  for (const OptimizerSlot& slot : slots) {
    CONVOY_DCHECK(args.momentum == 0 || slot.state1, "lars_update: momentum {} without its buffer",
                  args.momentum);
  }
  host(stream).submit([=, parts = cut(slots)] {
    const std::vector<Norms> norms = norms_of(slots, parts);
    for_each_part(parts, [&](std::size_t, const Part& part) {
      const OptimizerSlot& slot = slots[part.slot];
      const double trust = trust_of(slot, args, norms[part.slot]);
      const MomentumStep step = {narrow(args.lr),
                                 narrow(args.momentum),
                                 narrow(trust * args.gradient_scale),
                                 narrow(trust * slot.weight_decay),
                                 1,
                                 args.nesterov,
                                 false};
      loops().lars(part.size, step, slot.gradient.as<float>() + part.begin,
                   at(slot.state1, part.begin), at(slot.weight, part.begin));
    });
  });
}

void adamw_update(Stream& stream, const std::vector<OptimizerSlot>& slots, const AdamwArgs& args) {
  check_slots("adamw_update", stream, slots);
  for (const OptimizerSlot& slot : slots) {
    CONVOY_DCHECK(slot.state1 && slot.state2, "adamw_update: a moment is left out");
  }
  const double correction1 = 1 - std::pow(args.beta1, static_cast<double>(args.step));
  const double correction2 = 1 - std::pow(args.beta2, static_cast<double>(args.step));
  host(stream).submit([=, parts = cut(slots)] {
    for_each_part(parts, [&](std::size_t, const Part& part) {
      const OptimizerSlot& slot = slots[part.slot];
      const AdamwStep step = {narrow(args.beta1),
                              narrow(args.beta2),
                              narrow(1 - args.beta1),
                              narrow(1 - args.beta2),
                              narrow(args.gradient_scale),
                              narrow(1 - args.lr * slot.weight_decay),
                              narrow(args.lr / correction1),
                              narrow(1 / std::sqrt(correction2)),
                              narrow(args.epsilon)};
      loops().adamw(part.size, step, slot.gradient.as<float>() + part.begin,
                    at(slot.state1, part.begin), at(slot.state2, part.begin),
                    at(slot.weight, part.begin));
    });
  });
}

}  // namespace convoy::cpu
