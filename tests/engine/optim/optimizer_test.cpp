// Optimizers against torch.optim's values (tests/fixtures/make_optimizer_values.py), and what they
// save, load and refuse.
#include "engine/optim/optimizer.h"

#include <fmt/core.h>

#include <cmath>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>

#include "tests/support/catch.h"
#include "tests/support/expect_error.h"
#include "tests/support/formula.h"
#include "tests/support/tolerance.h"

namespace convoy::testing {
namespace {

using testing::expect_error;
using Values = std::vector<double>;
using Make = std::function<std::unique_ptr<Optimizer>(NamedTensors)>;

constexpr int kSteps = 5;

template <class T, class Options>
Make make(const Options& options) {
  return [options](NamedTensors parameters) {
    return std::make_unique<T>(std::move(parameters), options);
  };
}

const std::map<std::string, Make>& cases() {
  static const std::map<std::string, Make> list = {
      {"sgd", make<Sgd>(SgdOptions{.lr = 0.1})},
      {"sgd_decay", make<Sgd>(SgdOptions{.lr = 0.1, .weight_decay = 0.01})},
      {"sgd_momentum", make<Sgd>(SgdOptions{.lr = 0.1, .momentum = 0.9, .weight_decay = 0.01})},
      {"sgd_dampening", make<Sgd>(SgdOptions{.lr = 0.1, .momentum = 0.9, .dampening = 0.3})},
      {"sgd_late", make<Sgd>(SgdOptions{.lr = 0.1, .momentum = 0.9, .dampening = 0.3})},
      {"sgd_nesterov",
       make<Sgd>(SgdOptions{.lr = 0.1, .momentum = 0.9, .weight_decay = 0.01, .nesterov = true})},
      {"adamw", make<Adamw>(AdamwOptions{})},
      {"adamw_set",
       make<Adamw>(AdamwOptions{
           .lr = 0.05, .beta1 = 0.8, .beta2 = 0.95, .epsilon = 1e-4, .weight_decay = 0.1})},
      {"lars", make<Lars>(LarsOptions{})},
      {"lars_set",
       make<Lars>(LarsOptions{
           .lr = 0.5, .momentum = 0.8, .weight_decay = 0.01, .trust = 0.02, .nesterov = true})},
  };
  return list;
}

// "case step parameter" to values.
std::map<std::string, Values> read_expected() {
  std::ifstream file(std::string(CONVOY_FIXTURES) + "/optimizer_values.txt");
  std::map<std::string, Values> result;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name, step, parameter;
    words >> name >> step >> parameter;
    Values& values = result[fmt::format("{} {} {}", name, step, parameter)];
    for (double value; words >> value;) values.push_back(value);
  }
  return result;
}

// The two parameters of the fixture; `other` is the device of b.
NamedTensors parameters(const TensorOptions& options, const Device& other) {
  Tensor w = Tensor::from(signed_values("w", 6), {3, 2}, options);
  Tensor b = Tensor::from(signed_values("b", 4), {4}, {options.dtype, other});
  w.set_requires_grad();
  b.set_requires_grad();
  return {{"w", w}, {"b", b}};
}

void set_gradients(const NamedTensors& given, int step, double factor = 1) {
  for (const auto& [name, parameter] : given) {
    Values values = signed_values(fmt::format("{}/{}", name, step), parameter.numel());
    for (double& value : values) value *= factor;
    parameter.grad() = Tensor::from(values, parameter.shape(), parameter.options());
  }
}

std::vector<std::byte> bytes_of(const NamedTensors& tensors) {
  std::vector<std::byte> result;
  for (const auto& [name, tensor] : tensors) {
    const std::vector<std::byte> bytes = tensor.to_bytes();
    result.insert(result.end(), bytes.begin(), bytes.end());
  }
  return result;
}

void check_case(const std::string& name, const TensorOptions& options, const Device& other) {
  static const std::map<std::string, Values> expected = read_expected();
  const NamedTensors given = parameters(options, other);
  const auto optimizer = cases().at(name)(given);
  Tolerance allowed = tolerance(OpClass::optimizer, options.dtype, kSteps);
  if (options.dtype == DType::f64) allowed.rtol = 1e-13;  // torch takes other products together
  for (int step = 1; step <= kSteps; ++step) {
    set_gradients(given, step);
    if (name == "sgd_late" && step <= 2) given[1].second.grad() = Tensor();
    optimizer->step();
    for (const auto& [parameter, tensor] : given) {
      INFO(name << " step " << step << " " << describe(tensor));
      const Values& wanted = expected.at(fmt::format("{} {} {}", name, step, parameter));
      CHECK(difference(tensor.to_vector<double>(), wanted, tensor.shape(), allowed) ==
            kNoDifference);
    }
  }
  CHECK(optimizer->steps() == kSteps);
}

}  // namespace

TEST_CASE("optimizers: torch's values, also over two devices") {
  for (const auto& [name, make_optimizer] : cases()) {
    check_case(name, {DType::f64, "ref:0"}, "ref:0");
    check_case(name, {DType::f64, "ref:0"}, "ref:1");
    check_case(name, {DType::f32, "cpu:0"}, "cpu:0");
    check_case(name, {DType::f32, "cpu:0"}, "ref:0");
  }
}

TEST_CASE("optimizers: saved state goes on to the same bits") {
  for (const auto& [name, make_optimizer] : cases()) {
    INFO(name);
    const TensorOptions options{DType::f32, "cpu:0"};
    const NamedTensors straight = parameters(options, options.device);
    const auto one = make_optimizer(straight);
    NamedTensors saved_weights, saved_state;
    for (int step = 1; step <= 4; ++step) {
      set_gradients(straight, step);
      one->step();
      if (step != 2) continue;
      for (const auto& [key, tensor] : straight)
        saved_weights.emplace_back(key, tensor.detach().clone());
      for (const auto& [key, tensor] : one->state_dict())
        saved_state.emplace_back(key, tensor.clone());
    }
    const NamedTensors resumed = parameters(options, options.device);
    for (std::size_t i = 0; i < resumed.size(); ++i)
      Tensor(resumed[i].second).copy_(saved_weights[i].second);
    const auto two = make_optimizer(resumed);
    two->load_state_dict(saved_state, 2);
    CHECK(two->steps() == 2);
    for (int step = 3; step <= 4; ++step) {
      set_gradients(resumed, step);
      two->step();
    }
    CHECK(bytes_of(resumed) == bytes_of(straight));
    CHECK(bytes_of(two->state_dict()) == bytes_of(one->state_dict()));
  }
}

TEST_CASE("optimizers: names of the state") {
  const NamedTensors given = parameters({DType::f32, "ref:0"}, "ref:0");
  Adamw adamw(given, {});
  CHECK(adamw.state_dict().empty());
  set_gradients(given, 1);
  adamw.step();
  std::vector<std::string> names;
  for (const auto& [name, tensor] : adamw.state_dict()) names.push_back(name);
  CHECK(names ==
        std::vector<std::string>{"exp_avg/w", "exp_avg/b", "exp_avg_sq/w", "exp_avg_sq/b"});
  Sgd sgd(given, {.momentum = 0.9});
  sgd.step();
  CHECK(sgd.state_dict()[0].first == "momentum_buffer/w");
  Sgd plain(given, {});
  plain.step();
  CHECK(plain.state_dict().empty());
}

TEST_CASE("optimizers: what is saved must fit") {
  const NamedTensors given = parameters({DType::f32, "ref:0"}, "ref:0");
  const NamedTensors state = {{"momentum_buffer/w", Tensor::zeros({3, 2})},
                              {"momentum_buffer/b", Tensor::zeros({4})}};
  Sgd sgd(given, {.momentum = 0.9});
  expect_error(ErrorKind::checkpoint, {"sgd", "momentum_buffer", "b"},
               [&] { sgd.load_state_dict({state[0]}, 3); });
  expect_error(ErrorKind::checkpoint, {"momentum_buffer/b", "(5)", "(4)"}, [&] {
    sgd.load_state_dict({state[0], {"momentum_buffer/b", Tensor::zeros({5})}}, 3);
  });
  expect_error(ErrorKind::checkpoint, {"momentum_buffer/c", "fits no parameter"}, [&] {
    sgd.load_state_dict({state[0], state[1], {"momentum_buffer/c", Tensor::zeros({1})}}, 3);
  });
  CHECK_NOTHROW(sgd.load_state_dict({}, 0));
  Tensor(given[1].second).set_requires_grad(false);  // frozen: it has never had a state
  CHECK_NOTHROW(sgd.load_state_dict({state[0]}, 3));
}

TEST_CASE("optimizers: parameters without a gradient stay, others move by a scaled one") {
  const NamedTensors given = parameters({DType::f64, "ref:0"}, "ref:0");
  const NamedTensors scaled = parameters({DType::f64, "ref:0"}, "ref:0");
  Sgd one(given, {.lr = 0.1, .momentum = 0.9}), two(scaled, {.lr = 0.1, .momentum = 0.9});
  set_gradients(given, 1);
  set_gradients(scaled, 1, 4);
  given[1].second.grad() = scaled[1].second.grad() = Tensor();
  one.step();
  two.step(0.25);
  CHECK(bytes_of(given) == bytes_of(scaled));
  CHECK(given[1].second.to_vector<double>() == signed_values("b", 4));
  one.zero_grad();
  CHECK_FALSE(given[0].second.grad().defined());
  one.set_lr(0.5);
  CHECK(one.lr() == 0.5);
}

TEST_CASE("optimizers: state follows a parameter to another device and type") {
  auto layer = std::make_shared<Module>();
  NamedTensors given = parameters({DType::f32, "ref:0"}, "ref:0");
  Sgd sgd(given, {.lr = 0.5, .momentum = 0.5});
  set_gradients(given, 1);
  sgd.step();
  const Values before = sgd.state_dict()[0].second.to_vector<double>();
  for (auto& [name, tensor] : given) {
    const Tensor moved = tensor.detach().to(Device("ref:1")).to(DType::f64);
    tensor.impl()->storage = moved.storage();
    tensor.impl()->dtype = moved.dtype();
    tensor.grad() = Tensor::zeros_like(moved);
  }
  sgd.step();
  const Tensor state = sgd.state_dict()[0].second;
  CHECK(describe(state) == "f64 (3, 2) on ref:1");
  CHECK(std::abs(state.to_vector<double>()[0] - before[0] / 2) < 1e-7);
}

TEST_CASE("optimizers: bad settings") {
  expect_error(ErrorKind::usage, {"no parameters"}, [] { Sgd({}, {}); });
  const NamedTensors given = parameters({DType::f32, "ref:0"}, "ref:0");
  expect_error(ErrorKind::usage, {"nesterov", "momentum is 0"},
               [&] { Sgd(given, {.nesterov = true}); });
  expect_error(ErrorKind::usage, {"nesterov", "dampening 0.1"},
               [&] { Sgd(given, {.momentum = 0.9, .dampening = 0.1, .nesterov = true}); });
}

TEST_CASE("squared norms: of each tensor, over devices, in double") {
  const Tensor a = Tensor::from(std::vector<float>{3, 4}, {2}, "ref:0");
  const Tensor b = Tensor::from(std::vector<float>{1e-3F, 1e4F}, {2}, "cpu:0");
  const Tensor c = Tensor::from(std::vector<double>{1e200}, {1}, "ref:1");
  const Values norms = squared_norms({a, b, c, a});
  CHECK(norms[0] == 25);
  CHECK(norms[1] == double(1e-3F) * 1e-3F + 1e8);
  CHECK(std::isinf(norms[2]));
  CHECK(norms[3] == 25);
  CHECK(squared_norms({}).empty());
}

}  // namespace convoy::testing
