// Backward in two halves: weight gradients that wait give the same bits, in the same order.
#include "engine/autograd/backward.h"
#include "engine/nn/layers.h"
#include "engine/ops/ops.h"
#include "tests/engine/gradient_case.h"
#include "tests/support/catch.h"
#include "tests/support/expect_error.h"
#include "tests/support/formula.h"

namespace convoy::testing {
namespace {

// Convolution, batch norm, pooling, and a linear layer used twice.
class SmallNetwork {
 public:
  explicit SmallNetwork(const TensorOptions& options) : options_(options) {
    for (Module* module : std::initializer_list<Module*>{&conv_, &norm_, &linear_}) {
      module->initialize(3);
      module->to(options.device);
      module->to(options.dtype);
    }
    std::vector<std::pair<std::string, Tensor>> named{
        {"conv.weight", conv_.weight},     {"conv.bias", conv_.bias},
        {"norm.weight", norm_.weight},     {"norm.bias", norm_.bias},
        {"linear.weight", linear_.weight}, {"linear.bias", linear_.bias}};
    for (auto& [name, parameter] : named) {
      parameters.push_back(parameter);
      parameter.on_gradient([this, name = name](Tensor&) { hooks.push_back(name); });
    }
  }

  Tensor loss(int micro_batch) {
    const Shape shape{2, 3, 6, 6};
    const auto name = "x/" + std::to_string(micro_batch);
    const Tensor x = Tensor::from(signed_values(name, shape.count()), shape, options_);
    const Tensor y = global_avg_pool2d(norm_(conv_(x))).flatten();
    return sum(square(linear_(relu(linear_(y)))));
  }

  std::vector<std::vector<std::byte>> gradients() const {
    std::vector<std::vector<std::byte>> result;
    for (const Tensor& parameter : parameters) result.push_back(parameter.grad().to_bytes());
    return result;
  }

  std::vector<Tensor> parameters;
  std::vector<std::string> hooks;

 private:
  TensorOptions options_;
  Conv2d conv_{3, 4, 3, {.padding = 1}};
  BatchNorm2d norm_{4, true};
  Linear linear_{4, 4};
};

const TensorOptions kDevices[] = {kOracle, {DType::f32, "cpu:0"}};

}  // namespace

TEST_CASE("postponed weights: same bits, same order of hooks") {
  for (const TensorOptions& options : kDevices) {
    SmallNetwork at_once(options), later(options);
    at_once.loss(0).backward();
    PostponedWeights postponed;
    CHECK(postponed.empty());
    backward({later.loss(0)}, {}, {.postponed = &postponed});
    CHECK_FALSE(postponed.empty());
    CHECK(later.hooks.empty());
    postponed.run();
    CHECK(postponed.empty());
    CHECK(later.gradients() == at_once.gradients());
    CHECK(later.hooks == at_once.hooks);
    CHECK(at_once.hooks.size() == 6);
    postponed.run();  // nothing is left
    CHECK(later.gradients() == at_once.gradients());
  }
}

TEST_CASE("postponed weights of several micro-batches, each in its own list") {
  SmallNetwork at_once(kOracle), later(kOracle);
  std::vector<PostponedWeights> lists(3);
  for (int i = 0; i < 3; ++i) {
    at_once.loss(i).backward();
    backward({later.loss(i)}, {}, {.postponed = &lists[static_cast<std::size_t>(i)]});
  }
  for (PostponedWeights& list : lists) list.run();
  CHECK(later.gradients() == at_once.gradients());
  CHECK(later.hooks == at_once.hooks);
}

TEST_CASE("postponed weights of several micro-batches in one list: a hook each, at the end") {
  SmallNetwork at_once(kOracle), later(kOracle);
  PostponedWeights postponed;
  for (int i = 0; i < 2; ++i) {
    at_once.loss(i).backward();
    backward({later.loss(i)}, {}, {.postponed = &postponed});
  }
  postponed.run();
  CHECK(later.gradients() == at_once.gradients());
  CHECK(later.hooks.size() == 6);
}

TEST_CASE("postponed weights: after an error, another run goes on where it stopped") {
  SmallNetwork at_once(kOracle), later(kOracle);
  at_once.loss(0).backward();
  PostponedWeights postponed;
  backward({later.loss(0)}, {}, {.postponed = &postponed});
  bool failed = false;
  later.parameters[4].on_gradient([&](Tensor&) {
    if (!std::exchange(failed, true)) CONVOY_FAIL(numerics, "of a hook");
  });
  testing::expect_error(ErrorKind::numerics, {"of a hook"}, [&] { postponed.run(); });
  CHECK_FALSE(postponed.empty());
  postponed.run();
  CHECK(postponed.empty());
  // The hook's own op is done, though the gradients behind the failed one were not delivered.
  for (std::size_t i : {0, 1, 2, 3, 4}) {
    CHECK(later.gradients()[i] == at_once.gradients()[i]);
  }
}

TEST_CASE("postponed weights: the end of backward is the end of their run") {
  Linear linear(3, 2);
  linear.to(Device("ref:0"));
  linear.to(DType::f64);
  int ends = 0;
  bool is_complete = false;
  Tensor x = Tensor::ones({1, 3}, kOracle);
  x.set_requires_grad();
  x.on_gradient([&](Tensor&) {
    at_backward_end([&] {
      ++ends;
      is_complete = linear.weight.grad().defined() && linear.bias.grad().defined();
    });
  });
  PostponedWeights postponed;
  backward({sum(linear(x))}, {}, {.postponed = &postponed});
  CHECK(ends == 0);
  postponed.run();
  CHECK(ends == 1);
  CHECK(is_complete);
  postponed.run();
  CHECK(ends == 1);
  backward({sum(x)}, {}, {.postponed = &postponed});  // nothing waits
  CHECK(ends == 2);
}

TEST_CASE("input gradients do not wait") {
  Linear linear(3, 2);
  linear.to(Device("ref:0"));
  Tensor x = Tensor::ones({1, 3}, {DType::f32, "ref:0"});
  x.set_requires_grad();
  PostponedWeights postponed;
  backward({sum(linear(x))}, {}, {.postponed = &postponed});
  CHECK(x.grad().defined());
  CHECK_FALSE(linear.weight.grad().defined());
  postponed.run();
  CHECK(linear.weight.grad().defined());
}

TEST_CASE("a graph whose weights wait can neither be kept nor used again") {
  SmallNetwork network(kOracle);
  PostponedWeights postponed;
  const Tensor loss = network.loss(0);
  testing::expect_error(ErrorKind::usage, {"postponed", "kept"}, [&] {
    backward({loss}, {}, {.postponed = &postponed, .retain_graph = true});
  });
  backward({loss}, {}, {.postponed = &postponed});
  testing::expect_error(ErrorKind::usage, {"used and freed"}, [&] { loss.backward(); });
  postponed.run();
  CHECK(network.hooks.size() == 6);

  Linear layer(3, 2);
  const Tensor y = layer(Tensor::ones({1, 3})), dy = Tensor::ones({1, 2});
  backward({y}, {dy}, {.postponed = &postponed});  // the root itself waits
  testing::expect_error(ErrorKind::usage, {"linear", "used and freed"},
                        [&] { backward({y}, {dy}); });
  postponed.run();
  CHECK(layer.bias.grad().to_vector<float>() == std::vector<float>{1, 1});
}

TEST_CASE("a weight that an op has made gets its gradient at once") {
  Tensor half = Tensor::full({2, 2}, 0.5, kOracle);
  half.set_requires_grad();
  const Tensor x = Tensor::ones({1, 2}, kOracle);
  PostponedWeights postponed;
  backward({sum(linear(x, half + half))}, {}, {.postponed = &postponed});
  CHECK(postponed.empty());
  CHECK(half.grad().to_vector<double>() == std::vector<double>(4, 2.0));
}

}  // namespace convoy::testing
