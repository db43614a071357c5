// Modules: names, state_dict and what it refuses, modes, moves.
#include "engine/nn/module.h"

#include "engine/nn/layers.h"
#include "kernels/base/context.h"
#include "kernels/base/error.h"
#include "tests/support/catch.h"
#include "tests/support/expect_error.h"

namespace convoy::testing {
namespace {

using testing::expect_error;
using Names = std::vector<std::string>;

// conv, then a child with a norm and a linear layer.
class Tree : public Module {
 public:
  Tree() {
    scale = register_parameter("scale", Tensor::ones({1}));
    conv = register_module("conv", std::make_shared<Conv2d>(1, 2, 3));
    auto head = std::make_shared<Sequential>();
    head->add("norm", std::make_shared<BatchNorm2d>(2)).add("fc", std::make_shared<Linear>(2, 3));
    register_module("head", head);
  }
  void add_again() { register_module("conv", std::make_shared<Relu>()); }

  Tensor scale;
  std::shared_ptr<Conv2d> conv;
};

Names names_of(const NamedTensors& tensors) {
  Names names;
  for (const auto& [name, tensor] : tensors) names.push_back(name);
  return names;
}

NamedTensors without(NamedTensors state, const std::string& name) {
  std::erase_if(state, [&](const auto& entry) { return entry.first == name; });
  return state;
}

Tensor find(const NamedTensors& state, const std::string& name) {
  for (const auto& [key, tensor] : state) {
    if (key == name) return tensor;
  }
  return {};
}

}  // namespace

TEST_CASE("module: names in the order of registration") {
  Tree tree;
  CHECK(names_of(tree.named_parameters()) == Names{"scale", "conv.weight", "conv.bias",
                                                   "head.norm.weight", "head.norm.bias",
                                                   "head.fc.weight", "head.fc.bias"});
  CHECK(names_of(tree.named_buffers()) == Names{"head.norm.running_mean", "head.norm.running_var"});
  CHECK(tree.state_dict().size() == 10);
  CHECK(tree.parameter_count() == 1 + 18 + 2 + 4 + 6 + 3);
  CHECK(tree.parameters().size() == 7);
  for (const Tensor& parameter : tree.parameters()) CHECK(parameter.requires_grad());
  CHECK_FALSE(tree.named_buffers()[0].second.requires_grad());
  expect_error(ErrorKind::usage, {"'conv'"}, [&] { tree.add_again(); });
}

TEST_CASE("module: for_each visits parents before children") {
  Tree tree;
  Names names;
  tree.for_each([&](const std::string& name, Module&) { names.push_back(name); });
  CHECK(names == Names{"", "conv", "head", "head.norm", "head.fc"});
}

TEST_CASE("module: a state moves from one module to another") {
  Tree one, two;
  one.initialize(1);
  two.initialize(2);
  auto norm =
      std::dynamic_pointer_cast<BatchNorm2d>(one.children()[1].second->children()[0].second);
  norm->num_batches_tracked = 7;
  norm->running_mean.fill_(0.5);
  CHECK(find(one.state_dict(), "head.norm.num_batches_tracked").item() == 7);
  two.load_state_dict(one.state_dict());
  const NamedTensors from = one.state_dict(), to = two.state_dict();
  REQUIRE(names_of(from) == names_of(to));
  for (std::size_t i = 0; i < from.size(); ++i) {
    CHECK(from[i].second.to_bytes() == to[i].second.to_bytes());
    CHECK(from[i].second.dtype() == to[i].second.dtype());
  }
  one.scale.fill_(9);
  CHECK(two.scale.item() == 1);
}

TEST_CASE("module: counters may be missing") {
  Tree one, two;
  CHECK_NOTHROW(two.load_state_dict(without(one.state_dict(), "head.norm.num_batches_tracked")));
}

TEST_CASE("module: a state that does not fit is refused whole") {
  Tree one, two;
  one.scale.fill_(5);
  NamedTensors extra = one.state_dict();
  extra.emplace_back("stranger", Tensor::zeros({1}));
  expect_error(ErrorKind::checkpoint, {"0 missing", "1 unexpected", "stranger"},
               [&] { two.load_state_dict(extra); });
  const NamedTensors missing = without(one.state_dict(), "conv.bias");
  expect_error(ErrorKind::checkpoint, {"1 missing", "conv.bias", "0 unexpected"},
               [&] { two.load_state_dict(missing); });
  NamedTensors misshaped = one.state_dict();
  for (auto& [name, tensor] : misshaped) {
    if (name == "head.fc.bias") tensor = Tensor::zeros({4});
  }
  for (bool strict : {true, false}) {
    expect_error(ErrorKind::checkpoint, {"head.fc.bias", "(4)", "(3)"},
                 [&] { two.load_state_dict(misshaped, strict); });
  }
  CHECK(two.scale.item() == 1);
  two.load_state_dict(missing, false);
  CHECK(two.scale.item() == 5);
  expect_error(ErrorKind::checkpoint, {"10 missing", "..."}, [] {
    class Many : public Module {
     public:
      Many() {
        for (int i = 0; i < 10; ++i) register_parameter(fmt::format("p{}", i), Tensor::ones({1}));
      }
    };
    Many().load_state_dict({});
  });
}

TEST_CASE("module: training mode reaches all below") {
  Tree tree;
  auto all = [&](bool training) {
    bool equal = true;
    tree.for_each([&](const std::string&, Module& m) { equal &= m.is_training() == training; });
    return equal;
  };
  CHECK(all(true));
  tree.eval();
  CHECK(all(false));
  tree.train();
  CHECK(all(true));
}

TEST_CASE("module: moves keep handles and drop gradients") {
  Tree tree;
  const Tensor handle = tree.named_parameters()[1].second;
  handle.grad() = Tensor::zeros_like(handle);
  const std::vector<float> before = handle.to_vector<float>();
  tree.to(Device("ref:0"));
  tree.to(DType::f64);
  CHECK(describe(handle) == "f64 (2, 1, 3, 3) on ref:0");
  CHECK(handle.requires_grad());
  CHECK(handle.to_vector<float>() == before);
  CHECK_FALSE(handle.grad().defined());
  for (const auto& [name, tensor] : tree.named_buffers()) CHECK(tensor.dtype() == DType::f64);
  CHECK(find(tree.state_dict(), "head.norm.num_batches_tracked").dtype() == DType::i64);
  const Tensor x = Tensor::ones({2, 1, 3, 3}, {DType::f64, "ref:0"});
  CHECK(tree.conv->forward(x).dtype() == DType::f64);
}

TEST_CASE("module: zero_grad drops every gradient") {
  Tree tree;
  for (const Tensor& parameter : tree.parameters())
    parameter.grad() = Tensor::zeros_like(parameter);
  tree.zero_grad();
  for (const Tensor& parameter : tree.parameters()) CHECK_FALSE(parameter.grad().defined());
}

TEST_CASE("module: forward without a body, and inputs that do not fit") {
  Module empty;
  expect_error(ErrorKind::usage, {"Module", "forward_all"}, [&] { empty.forward(Tensor()); });
  Relu relu;
  expect_error(ErrorKind::usage, {"ReLU", "2 inputs", "1"}, [&] {
    relu.forward_all({Tensor(), Tensor()});
  });
}

TEST_CASE("module: made without values, then materialized in one type on one device") {
  std::shared_ptr<Tree> late;
  const std::uint64_t requests = context("cpu:0").memory().statistics().requests;
  {
    NoValuesScope no_values;
    late = std::make_shared<Tree>();
  }
  // `scale` is a tensor that its author made: it is dropped when it is registered.
  CHECK(context("cpu:0").memory().statistics().requests == requests + 1);
  CHECK_FALSE(late->is_materialized());
  CHECK_FALSE(late->scale.is_allocated());
  CHECK(late->parameter_count() == 1 + 18 + 2 + 4 + 6 + 3);
  expect_error(ErrorKind::usage, {"f32 (2, 1, 3, 3) on cpu:0 has no values", "materialize"}, [&] {
    late->conv->forward(Tensor::ones({1, 1, 3, 3}));
  });
  expect_error(ErrorKind::usage, {"has no values"}, [&] { late->to("ref:0"); });

  late->materialize("ref:0", DType::f64, 7, "tree");
  CHECK(late->is_materialized());
  CHECK(late->scale.to_vector<double>() == std::vector<double>{0});  // nobody draws it
  Tree early;
  early.scale.zero_();
  early.initialize(7, "tree");
  early.to("ref:0");
  early.to(DType::f64);
  const NamedTensors state = late->state_dict(), expected = early.state_dict();
  for (std::size_t i = 0; i < expected.size(); ++i) {
    INFO(expected[i].first);
    CHECK(describe(state[i].second) == describe(expected[i].second));
    CHECK(state[i].second.to_bytes() == expected[i].second.to_bytes());
    CHECK(state[i].second.requires_grad() == expected[i].second.requires_grad());
  }
  late->conv->weight.fill_(5);
  late->materialize("cpu:0");  // nothing is missing: nothing changes
  CHECK(late->conv->weight.to_vector<double>() == std::vector<double>(18, 5));
}

TEST_CASE("module: the scope without values ends") {
  {
    NoValuesScope outer;
    { NoValuesScope inner; }
    CHECK_FALSE(Linear(2, 2).is_materialized());
  }
  CHECK(Linear(2, 2).is_materialized());
}

}  // namespace convoy::testing
