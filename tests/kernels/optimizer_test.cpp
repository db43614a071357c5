#include <fmt/format.h>

#include <cmath>

#include "tests/kernels/torch_values.h"
#include "tests/support/catch.h"

namespace convoy::testing {
namespace {

const Conv2dShape kConvolution{1, 19, 3, 5, 33, 3, 3, 1, 1, 1, 1};

// One step over a weight in its preferred layout and a bias. `states` memories per parameter, which
// start as given by `state2_limit` (second moments are not negative).
template <class Args>
OpCase step_case(const std::string& name, int states, const Args& args,
                 void (*KernelTable::*kernel)(Stream&, const std::vector<OptimizerSlot>&,
                                              const Args&),
                 bool first = false) {
  OpCase result{name, OpClass::optimizer};
  result.layouts = kConvolution;
  result.takes_bf16 = false;
  auto add = [&](const std::string& which, const Shape& shape, Slot slot) {
    result.in_place(which, shape, slot).input("g" + which, shape, slot);
    if (states > 0) result.in_place("s" + which, shape, slot);
    if (states > 1) {
      result.in_place("t" + which, shape, slot, uniform(name + "/t" + which, shape.count()));
    }
  };
  add("w", kConvolution.weight(), Slot::conv_weight);
  add("b", {33}, Slot::plain);
  return result.run([=](const Launch& l) {
    std::vector<OptimizerSlot> slots;
    for (const char* which : {"w", "b"}) {
      const std::string of = which;
      const bool decays = of == "w";
      slots.push_back({l.stored.at(of), l[of], l["g" + of], l["s" + of], l["t" + of],
                       decays ? 0.05 : 0, decays, first});
    }
    (l.kernels.*kernel)(l.stream, slots, args);
  });
}

// Four steps over ten values, as the sequences that PyTorch has run.
template <class Args, class SetStep>
OpCase sequence_case(const std::string& key, double decay, Args args, SetStep set_step,
                     void (*KernelTable::*kernel)(Stream&, const std::vector<OptimizerSlot>&,
                                                  const Args&)) {
  OpCase result{key, OpClass::optimizer};
  result.in_place("w", {10});
  for (int step = 0; step < 4; ++step) result.input(fmt::format("g{}", step), {10});
  for (const char* state : {"s", "t"}) {
    result.in_place(state, {10}, Slot::plain, std::vector<double>(10));
  }
  return result.run([=](const Launch& l) mutable {
    for (int step = 0; step < 4; ++step) {
      set_step(args, step);
      (l.kernels.*kernel)(
          l.stream,
          {{10, l["w"], l[fmt::format("g{}", step)], l["s"], l["t"], decay, true, step == 0}},
          args);
    }
  });
}

void check_sgd(const std::string& key, double decay, const SgdArgs& args) {
  check_digests(sequence_case(
                    key, decay, args, [](SgdArgs&, int) {}, &KernelTable::sgd_update),
                torch_values(key, {"w"}));
}

void check_lars(const std::string& key, const LarsArgs& args) {
  check_digests(sequence_case(
                    key, 0.05, args, [](LarsArgs&, int) {}, &KernelTable::lars_update),
                torch_values(key, {"w"}));
}

}  // namespace

TEST_CASE("sgd_update: backends agree with the reference") {
  for (bool nesterov : {false, true}) {
    for (bool first : {false, true}) {
      const SgdArgs args{0.1, 0.9, nesterov ? 0 : 0.25, nesterov, 0.5};
      check(step_case(fmt::format("sgd nesterov {} first {}", nesterov, first), 1, args,
                      &KernelTable::sgd_update, first));
    }
  }
  SgdArgs plain;
  plain.lr = 0.1;
  check(step_case("sgd without state", 0, plain, &KernelTable::sgd_update));
}

TEST_CASE("sgd_update: sequences as PyTorch") {
  check_sgd("sgd plain", 0, {0.1});
  check_sgd("sgd decay", 0.05, {0.1});
  check_sgd("sgd momentum", 0.05, {0.1, 0.9});
  check_sgd("sgd dampening", 0.05, {0.1, 0.9, 0.3});
  check_sgd("sgd nesterov", 0.05, {0.1, 0.9, 0, true});
}

TEST_CASE("lars_update: backends agree with the reference") {
  for (bool nesterov : {false, true}) {
    const LarsArgs args{0.1, 0.9, 0.02, 1e-8, nesterov, 0.5};
    check(step_case(fmt::format("lars nesterov {}", nesterov), 1, args, &KernelTable::lars_update));
  }
}

TEST_CASE("lars_update: sequences as the paper's algorithm in PyTorch") {
  check_lars("lars", {0.5, 0.9, 0.02, 1e-8, false});
  check_lars("lars nesterov", {0.5, 0.9, 0.02, 1e-8, true});
}

TEST_CASE("lars_update: without a positive norm, or unadapted, the step is that of SGD") {
  // w, g, adapt; trust 0.5, no decay, lr 1: one step without momentum from one value.
  struct Case {
    double w, g;
    bool adapt;
    double expected;
  };
  for (const Case& c :
       {Case{0, 3, true, -3}, Case{2, 0, true, 2}, Case{2, 4, false, -2}, Case{2, 4, true, 1}}) {
    OpCase op_case{"lars norms", OpClass::optimizer};
    op_case.in_place("w", {1}, Slot::plain, {c.w}).input("g", {1}, Slot::plain, {c.g});
    op_case.run([=](const Launch& l) {
      l.kernels.lars_update(l.stream, {{1, l["w"], l["g"], {}, {}, 0, c.adapt}},
                            {1, 0, 0.5, 0, false, 1});
    });
    for (const Variant& variant : float_variants(op_case)) {
      INFO("w " << c.w << ", g " << c.g);
      compare(op_case, variant, run(op_case, variant), {{"w", {c.expected}}});
    }
  }
}

TEST_CASE("adamw_update: backends agree with the reference") {
  for (std::int64_t step : {1, 2, 1000}) {
    const AdamwArgs args{0.01, 0.9, 0.999, 1e-8, step, 0.5};
    check(step_case(fmt::format("adamw step {}", step), 2, args, &KernelTable::adamw_update));
  }
}

TEST_CASE("adamw_update: a sequence as PyTorch") {
  check_digests(
      sequence_case(
          "adamw", 0.05, AdamwArgs{0.1, 0.8, 0.95, 1e-6},
          [](AdamwArgs& args, int step) { args.step = step + 1; }, &KernelTable::adamw_update),
      torch_values("adamw", {"w"}));
}

}  // namespace convoy::testing
