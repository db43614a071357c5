// Backward: what adds up, what is refused, when hooks fire, across devices.
#include "engine/autograd/backward.h"

#include <chrono>
#include <future>
#include <thread>

#include "engine/autograd/grad_mode.h"
#include "engine/autograd/node.h"
#include "engine/ops/ops.h"
#include "kernels/base/context.h"
#include "tests/engine/gradient_case.h"
#include "tests/support/catch.h"
#include "tests/support/expect_error.h"

namespace convoy::testing {
namespace {

using testing::expect_error;
using Values = std::vector<double>;

Tensor leaf(const Values& values, const char* device = "ref:0") {
  Tensor x = Tensor::from(values, {std::ssize(values)}, {DType::f64, device});
  x.set_requires_grad();
  return x;
}

Values grad(const Tensor& x) {
  return x.grad().to_vector<double>();
}

// Holds a stream back until it is opened, at the latest by the end of the scope.
class Gate {
 public:
  explicit Gate(Stream& stream) {
    stream.host_call([open = gate_.get_future().share()] { open.wait(); });
  }
  ~Gate() {
    if (!is_open_) open();
  }
  void open() {
    is_open_ = true;
    gate_.set_value();
  }

 private:
  std::promise<void> gate_;
  bool is_open_ = false;
};

// Whether `event` comes while another stream is held back.
bool comes(const Event& event) {
  for (int i = 0; i < 100 && !event.done(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return event.done();
}

}  // namespace

TEST_CASE("backward adds to what is there") {
  const Tensor x = leaf({1, 2});
  sum(square(x)).backward();
  CHECK(grad(x) == Values{2, 4});
  sum(square(x)).backward();
  CHECK(grad(x) == Values{4, 8});
  x.grad() = Tensor();
  sum(x).backward();
  CHECK(grad(x) == Values{1, 1});
}

TEST_CASE("shared subexpressions count as often as they are used") {
  const Tensor x = leaf({1, 2, 3});
  const Tensor y = square(x);
  sum(y * y + y + x).backward();  // x^4 + x^2 + x
  CHECK(grad(x) == Values{4 + 2 + 1, 32 + 4 + 1, 108 + 6 + 1});
}

TEST_CASE("gradients do not share memory with each other or with what was given") {
  const Tensor a = leaf({1, 2}), b = leaf({3, 4});
  const Tensor dy = Tensor::from(Values{1, 1}, {2}, kOracle);
  backward({a + b}, {dy});
  a.grad().fill_(7);
  CHECK(grad(b) == Values{1, 1});
  CHECK(dy.to_vector<double>() == Values{1, 1});
  backward({a.reshape({2, 1}).reshape({2})}, {dy});
  CHECK(grad(a) == Values{8, 8});
  CHECK(dy.to_vector<double>() == Values{1, 1});
}

TEST_CASE("several roots give the gradient of their sum") {
  const Tensor x = leaf({1, 2});
  const Tensor y = square(x);
  backward({sum(y), y, x},
           {{}, Tensor::from(Values{1, 10}, {2}, kOracle), Tensor::ones({2}, kOracle)});
  CHECK(grad(x) == Values{2 + 2 + 1, 4 + 40 + 1});
}

TEST_CASE("a leaf can be a root, and its hook is called") {
  const Tensor x = leaf({3});
  int calls = 0;
  x.on_gradient([&](Tensor&) { ++calls; });
  x.backward();
  CHECK(grad(x) == Values{1});
  CHECK(calls == 1);
}

TEST_CASE("saved values that were overwritten are refused") {
  const Tensor x = leaf({1, 2});
  const Tensor y = sum(square(x));
  Tensor(x).fill_(3);
  expect_error(ErrorKind::usage, {"square", "saved for backward", "overwritten"},
               [&] { y.backward(); });
  const Tensor a = leaf({1, 2}), b = leaf({1, 2});
  const Tensor product = sum(a * b);
  b.slice(0, 1).zero_();  // a view writes into the same memory
  expect_error(ErrorKind::usage, {"multiply", "overwritten"}, [&] { product.backward(); });
}

TEST_CASE("values that backward does not need may be overwritten") {
  const Tensor x = leaf({1, 2});
  const Tensor y = sum(sigmoid(x) + x);
  const Tensor z = sum(x);
  Tensor(x).detach().fill_(3);
  CHECK_NOTHROW(z.backward());
  CHECK_THROWS_AS(y.backward(), Error);
}

TEST_CASE("a graph serves once, unless it is kept") {
  const Tensor x = leaf({1, 2});
  const Tensor y = sum(square(x));
  backward({y}, {}, {.postponed = nullptr, .retain_graph = true});
  CHECK(grad(x) == Values{2, 4});
  y.backward();
  CHECK(grad(x) == Values{4, 8});
  expect_error(ErrorKind::usage, {"backward", "used and freed", "retain_graph"},
               [&] { y.backward(); });
  CHECK(grad(x) == Values{4, 8});
  const Tensor on_top = sum(square(y));
  expect_error(ErrorKind::usage, {"used and freed"}, [&] { on_top.backward(); });
}

TEST_CASE("inside a NoGradScope nothing is recorded") {
  const Tensor x = leaf({1, 2});
  {
    NoGradScope outer;
    CHECK_FALSE(grad_enabled());
    { NoGradScope inner; }
    CHECK_FALSE(grad_enabled());
    const Tensor y = sum(square(x));
    CHECK_FALSE(y.requires_grad());
    CHECK(y.is_leaf());
  }
  CHECK(grad_enabled());
  CHECK(sum(square(x)).requires_grad());
  CHECK_FALSE(sum(square(x.detach())).requires_grad());
}

TEST_CASE("only leaves that ask for a gradient get one") {
  const Tensor x = leaf({1, 2});
  const Tensor constant = Tensor::ones({2}, kOracle);
  sum(multiply(x, constant)).backward();
  CHECK_FALSE(constant.grad().defined());
  Tensor off = leaf({1, 2});
  off.set_requires_grad(false);
  CHECK_FALSE(sum(off).requires_grad());
}

TEST_CASE("hooks are called once, when the gradient is final") {
  const Tensor w = leaf({2}), x = leaf({3});
  std::vector<std::string> calls;
  Values seen;
  w.on_gradient([&](Tensor& tensor) {
    calls.emplace_back("w");
    seen = grad(tensor);
  });
  x.on_gradient([&](Tensor&) { calls.emplace_back("x"); });
  sum(w * (w * x)).backward();  // w is used twice: d = 2 w x
  CHECK(std::count(calls.begin(), calls.end(), "w") == 1);
  CHECK(std::count(calls.begin(), calls.end(), "x") == 1);
  CHECK(seen == Values{12});
  sum(w).backward();
  CHECK(std::count(calls.begin(), calls.end(), "w") == 2);
  CHECK(seen == Values{13});
}

TEST_CASE("a hook that was taken away is not called") {
  const Tensor x = leaf({1});
  std::vector<int> calls;
  const auto first = x.on_gradient([&](Tensor&) { calls.push_back(1); });
  x.on_gradient([&](Tensor&) { calls.push_back(2); });
  x.remove_gradient_hook(first);
  x.on_gradient([&](Tensor&) { calls.push_back(3); });
  x.backward();
  CHECK(calls == std::vector<int>{2, 3});
}

TEST_CASE("work for the end of backward runs once, after all gradients") {
  const Tensor w = leaf({2}), x = leaf({3});
  std::vector<std::string> calls;
  Values seen;
  w.on_gradient([&](Tensor&) {
    calls.emplace_back("w");
    at_backward_end([&] {
      calls.emplace_back("end");
      seen = grad(x);
      at_backward_end([&] { calls.emplace_back("end of the end"); });
    });
  });
  sum(square(w) + x).backward();
  CHECK(calls == std::vector<std::string>{"w", "end", "end of the end"});
  CHECK(seen == Values{1});
  sum(x).backward();
  CHECK(calls.size() == 3);
  expect_error(ErrorKind::usage, {"at_backward_end", "outside"}, [] { at_backward_end([] {}); });
}

TEST_CASE("a backward within a backward has an end of its own") {
  const Tensor w = leaf({2}), x = leaf({3});
  std::vector<std::string> calls;
  const Tensor inner = sum(x);
  x.on_gradient([&](Tensor&) { at_backward_end([&] { calls.emplace_back("inner"); }); });
  w.on_gradient([&](Tensor&) {
    at_backward_end([&] { calls.emplace_back("outer"); });
    inner.backward();
    calls.emplace_back("hook");
  });
  sum(w).backward();
  CHECK(calls == std::vector<std::string>{"inner", "hook", "outer"});
}

TEST_CASE("a backward that fails calls nothing at its end") {
  const Tensor w = leaf({2}), x = leaf({3});
  int calls = 0;
  bool fails = true;
  w.on_gradient([&](Tensor&) { at_backward_end([&] { ++calls; }); });
  x.on_gradient([&](Tensor&) {
    if (fails) CONVOY_FAIL(numerics, "of a hook");
  });
  expect_error(ErrorKind::numerics, {"of a hook"}, [&] { backward({w, x}, {{}, {}}); });
  CHECK(calls == 0);
  fails = false;
  backward({w, x}, {{}, {}});
  CHECK(calls == 1);
}

TEST_CASE("gradients come back over devices") {
  const Tensor x = leaf({1, 2}), w = leaf({3, 4}, "ref:1");
  const Tensor there = square(x).to(Device("ref:1")) * w;
  const Tensor here = there.to(Device("ref:0")) * x;  // x^3 w
  sum(here).backward();
  CHECK(here.device() == Device("ref:0"));
  CHECK(x.grad().device() == Device("ref:0"));
  CHECK(w.grad().device() == Device("ref:1"));
  CHECK(grad(x) == Values{9, 48});
  CHECK(grad(w) == Values{1, 8});
}

TEST_CASE("a copy to another device holds the values of its time") {
  const Tensor x = leaf({1, 2});
  std::promise<void> gate;
  Stream& there = context("ref:1").default_stream();
  there.host_call([open = gate.get_future().share()] { open.wait(); });
  const Tensor copy = x.to(Device("ref:1"));
  Tensor(x).detach().fill_(7);  // ref:0 could do it at once
  std::thread opener([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    gate.set_value();
  });
  CHECK(copy.to_vector<double>() == Values{1, 2});
  CHECK(x.to_vector<double>() == Values{7, 7});
  opener.join();
}

TEST_CASE("a gradient that another device still copies is not added to") {
  const Tensor p = leaf({1, 2}), there = leaf({3, 4}, "ref:1");
  const Tensor shared = square(p);
  const Tensor later = square(shared);
  const Tensor moved = there.to(Device("ref:0"));
  const Tensor both = record("both", moved + shared.detach(), {moved, shared},
                             [](const Tensor& dy, const std::vector<bool>&) -> Gradients {
                               return {dy, dy};
                             });
  const Tensor loss = sum(later + both);
  Stream& here = context("ref:0").default_stream();
  here.synchronize();
  context("ref:1").default_stream().synchronize();
  Gate gate(context("ref:1").default_stream());
  // The copy of both's gradient to ref:1 is held back when later's comes on top of it.
  loss.backward();
  CHECK_FALSE(comes(here.record()));
  gate.open();
  CHECK(grad(there) == Values{1, 1});
  CHECK(grad(p) == Values{4 + 2, 32 + 4});  // of p^4 + p^2
}

TEST_CASE("a copy from another device does not overwrite what a third still reads") {
  Tensor x = Tensor::from(Values{1, 2}, {2}, "ref:0");
  const Tensor source = Tensor::from(Values{7, 8}, {2}, "ref:2");
  Stream& here = context("ref:0").default_stream();
  here.synchronize();
  Gate gate(context("ref:1").default_stream());
  const Tensor copy = x.to(Device("ref:1"));
  x.copy_(source);
  CHECK_FALSE(comes(here.record()));
  gate.open();
  CHECK(copy.to_vector<double>() == Values{1, 2});
  CHECK(x.to_vector<double>() == Values{7, 8});
}

TEST_CASE("a long chain does not recurse") {
  const Tensor x = leaf({1});
  const Tensor one = Tensor::ones({1}, kOracle);
  Tensor y = x;
  for (int i = 0; i < 100000; ++i) y = y + one;
  y.backward();
  CHECK(grad(x) == Values{1});
  Tensor unused = x;
  for (int i = 0; i < 100000; ++i) unused = unused + one;
  unused = Tensor();  // frees the chain without a backward
  CHECK(y.item() == 100001);
}

}  // namespace convoy::testing
