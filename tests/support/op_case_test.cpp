// That the harness sees what it looks for: kernels that do wrong on purpose.
#include "tests/support/op_case.h"

#include <cmath>

#include "kernels/base/host_stream.h"
#include "tests/support/catch.h"

namespace convoy::testing {
namespace {

const Variant kHost{"ref:0", DType::f64};

// y = x, and then `harm` to the memory of both.
OpCase copy_and(const std::function<void(double* x, double* y)>& harm) {
  OpCase result{"copy"};
  return result.input("x", {4}).output("y", {4}).run([harm](const Launch& l) {
    host(l.stream).submit([x = l["x"].as<double>(), y = l["y"].as<double>(), harm] {
      std::copy_n(x, 4, y);
      harm(x, y);
    });
  });
}

using Faults = std::vector<std::string>;

Faults faults_of(const std::function<void(double* x, double* y)>& harm) {
  return outcome(copy_and(harm), kHost).faults;
}

}  // namespace

TEST_CASE("op_case: a clean kernel has no faults") {
  const Outcome clean = outcome(copy_and([](double*, double*) {}), kHost);
  const Faults none;
  CHECK(clean.faults == none);
  CHECK(clean.results.at("y") == signed_values("copy/x", 4));
}

TEST_CASE("op_case: writes that should not be are seen") {
  CHECK(faults_of([](double*, double* y) { y[4] = 0; }) == Faults{"bytes beside y were written"});
  CHECK(faults_of([](double*, double* y) { y[-1] = 0; }) == Faults{"bytes beside y were written"});
  CHECK(faults_of([](double* x, double*) { x[3] = 7; }) == Faults{"input x was written"});
}

TEST_CASE("op_case: a second run that differs is seen") {
  int runs = 0;
  CHECK(faults_of([&](double*, double* y) { y[0] = ++runs; }) == Faults{"the second run differs"});
}

TEST_CASE("op_case: a result that nobody wrote is NaN") {
  OpCase op_case{"nothing"};
  op_case.output("y", {2}).run([](const Launch&) {});
  const Results results = run(op_case, kHost);
  for (double value : results.at("y")) CHECK(std::isnan(value));
}

TEST_CASE("tolerance: the largest error is named with its place") {
  const Tolerance allowed{0.1, 0};
  CHECK(difference({1, 2, 3, 4}, {1, 2.05, 3, 4}, {2, 2}, allowed) == kNoDifference);
  CHECK(difference({1, 2, 3, 4}, {1, 2.2, 3.5, 4}, {2, 2}, allowed) ==
        "2 of 4 are out; worst at [1, 0]: 3, expected 3.5, error 0.5 is 5 x the tolerance");
  CHECK(difference({1, 2}, {1}, {2}, allowed) == "2 values, expected 1");
}

TEST_CASE("tolerance: NaN and infinities stand for themselves alone") {
  const double nan = std::nan(""), infinity = INFINITY;
  const Tolerance allowed{1, 1};
  CHECK(difference({nan, infinity}, {nan, infinity}, {2}, allowed) == kNoDifference);
  CHECK(difference({nan}, {0}, {1}, allowed) != kNoDifference);
  CHECK(difference({0}, {nan}, {1}, allowed) != kNoDifference);
  CHECK(difference({infinity}, {-infinity}, {1}, allowed) != kNoDifference);
  CHECK(difference({1e30}, {infinity}, {1}, allowed) != kNoDifference);
}

TEST_CASE("tolerance: sums have more, by the root of their terms") {
  const Tolerance one = tolerance(OpClass::product, DType::f32);
  CHECK(tolerance(OpClass::product, DType::f32, 100).atol == 10 * one.atol);
  CHECK(tolerance(OpClass::product, DType::f64).atol < one.atol);
  CHECK(tolerance(OpClass::exact, DType::f32, 100).atol == 0);
}

TEST_CASE("formula: values and digests of the reference files") {
  // From the formula in Python's integers.
  const std::vector<double> values = uniform("input", 2);
  CHECK(values[0] == 0.0978183426575382);
  CHECK(values[1] == 0.14747860371491817);
  const Digest three = digest("x", {3, 4, 0});
  CHECK(three.norm == 5);
  CHECK(difference(three, three, 0) == kNoDifference);
  CHECK(difference(digest("x", {4, 3, 0}), three, 1e-3) != kNoDifference);
  CHECK(difference(digest("x", {3, 4, 0.1}), three, 1e-3) != kNoDifference);
}

}  // namespace convoy::testing
