#include <fmt/format.h>

#include <cmath>

#include "tests/kernels/torch_values.h"
#include "tests/support/catch.h"

namespace convoy::testing {
namespace {

constexpr double kEpsilon = 1e-5;

struct BatchNormCase {
  std::int64_t n, c, h, w;
  BatchNormShape shape() const { return {n, c, h * w}; }
  Shape x() const { return {n, c, h, w}; }
  double count() const { return double(n * h * w); }
  // A convolution whose output this normalises, for its layout.
  Conv2dShape convolution() const { return {n, c, h, w, c, 3, 3, 1, 1, 1, 1}; }
};

std::vector<BatchNormCase> shapes() {
  return {{4, 6, 5, 5}, {2, 64, 8, 8}, {8, 3, 1, 1}, {3, 17, 7, 3}, {1, 32, 4, 4}, {2, 160, 2, 2}};
}

OpCase base_case(const BatchNormCase& of, const std::string& kernel) {
  OpCase result{fmt::format("batch norm {}x{}x{}x{} {}", of.n, of.c, of.h, of.w, kernel),
                OpClass::normalisation};
  result.layouts = of.convolution();
  result.terms = of.count();
  return result;
}

BatchNormStatistics statistics(const Launch& l, double count) {
  return {l["mean"], l["m2"], count};
}

// Plausible statistics: a variance of 0.5 to 1.5.
OpCase& add_statistics(OpCase& op_case, const BatchNormCase& of, double count) {
  std::vector<double> m2 = uniform(op_case.name + "/m2", of.c);
  for (double& value : m2) value = count * (0.5 + value);
  return op_case.input_of(DType::f64, "mean", {of.c}).input_of(DType::f64, "m2", {of.c}, m2);
}

OpCase statistics_case(const BatchNormCase& of) {
  OpCase result = base_case(of, "statistics");
  result.op_class = OpClass::statistics;
  return result.input("x", of.x(), Slot::conv_y)
      .output_of(DType::f64, "mean", {of.c})
      .output_of(DType::f64, "m2", {of.c})
      .run([=](const Launch& l) {
        l.kernels.batch_norm_statistics(l.stream, of.shape(), l["x"], l["mean"], l["m2"]);
      });
}

OpCase apply_case(const BatchNormCase& of, bool residual, bool relu, double count) {
  OpCase result = base_case(of, fmt::format("apply, residual {}, relu {}", residual, relu));
  result.terms = 1;
  result.input("x", of.x(), Slot::conv_y).input("gamma", {of.c}).input("beta", {of.c});
  if (residual) result.input("residual", of.x(), Slot::conv_y);
  add_statistics(result, of, count).output("y", of.x(), Slot::conv_y).full({"gamma", "beta"});
  return result.run([=](const Launch& l) {
    l.kernels.batch_norm_apply(l.stream, of.shape(), l["x"], statistics(l, count), kEpsilon,
                               l["gamma"], l["beta"], l["residual"], relu, l["y"], {});
  });
}

OpCase& add_backward_inputs(OpCase& op_case, const BatchNormCase& of, bool relu) {
  // y as a ReLU leaves it: zero in about half of the places.
  std::vector<double> y = signed_values(op_case.name + "/y", of.x().count());
  for (double& value : y) value = std::max(value, 0.0);
  op_case.input("x", of.x(), Slot::conv_y).input("dy", of.x(), Slot::conv_y);
  if (relu) op_case.input("y", of.x(), Slot::conv_y, y);
  return op_case;
}

OpCase backward_reduce_case(const BatchNormCase& of, bool relu) {
  OpCase result = base_case(of, fmt::format("backward reduce, relu {}", relu));
  add_backward_inputs(result, of, relu);
  return add_statistics(result, of, of.count())
      .output_of(DType::f64, "sum_dz", {of.c}, OpClass::statistics)
      .output_of(DType::f64, "sum_dz_xhat", {of.c})
      .run([=](const Launch& l) {
        l.kernels.batch_norm_backward_reduce(l.stream, of.shape(), l["x"], l["y"], {}, l["dy"],
                                             statistics(l, of.count()), kEpsilon, relu, l["sum_dz"],
                                             l["sum_dz_xhat"]);
      });
}

OpCase backward_apply_case(const BatchNormCase& of, bool relu, bool frozen, bool residual) {
  OpCase result = base_case(
      of, fmt::format("backward apply, relu {}, frozen {}, residual {}", relu, frozen, residual));
  result.terms = 1;
  add_backward_inputs(result, of, relu).input("gamma", {of.c});
  add_statistics(result, of, of.count());
  if (!frozen) {
    result.input_of(DType::f64, "sum_dz", {of.c}).input_of(DType::f64, "sum_dz_xhat", {of.c});
  }
  result.output("dx", of.x(), Slot::conv_y);
  if (residual) result.output("dresidual", of.x(), Slot::conv_y, OpClass::exact);
  return result.full({"gamma"}).run([=](const Launch& l) {
    l.kernels.batch_norm_backward_apply(l.stream, of.shape(), l["x"], l["y"], {}, l["dy"],
                                        statistics(l, of.count()), kEpsilon, relu, l["gamma"],
                                        l["sum_dz"], l["sum_dz_xhat"], l["dx"], l["dresidual"]);
  });
}

// PackedStatistics of five channels.
std::vector<double> packed_values(const std::string& name, double count) {
  std::vector<double> values = signed_values(name + "/mean", 5);
  for (double m2 : uniform(name + "/m2", 5)) values.push_back(m2);
  values.push_back(count);
  return values;
}

OpCase merge_case(const std::string& name, double count, const std::vector<double>& part_counts) {
  OpCase result{"batch norm merge, " + name, OpClass::double_sum};
  std::vector<double> parts;
  for (double part_count : part_counts) {
    const std::string part_name = fmt::format("part {}", parts.size());
    for (double value : packed_values(part_name, part_count)) parts.push_back(value);
  }
  result.in_place("total", {11}, Slot::plain, packed_values("total", count));
  result.operands.back().dtype = DType::f64;
  return result.input_of(DType::f64, "parts", {std::ssize(parts)}, parts)
      .run([parts = std::ssize(part_counts)](const Launch& l) {
        l.kernels.batch_norm_merge(l.stream, {5}, parts, l["parts"], l["total"]);
      });
}

OpCase update_case(std::int64_t channels, double count, double momentum) {
  OpCase result{"batch norm update", OpClass::elementwise};
  return result.input_of(DType::f64, "mean", {channels})
      .input_of(DType::f64, "m2", {channels}, uniform("update/m2", channels))
      .in_place("running_mean", {channels})
      .in_place("running_var", {channels})
      .full({"running_mean", "running_var"})
      .run([=](const Launch& l) {
        l.kernels.batch_norm_update(l.stream, channels, statistics(l, count), momentum,
                                    l["running_mean"], l["running_var"]);
      });
}

const std::vector<double>& values(const Results& results, const char* name) {
  return results.at(name);
}

// One channel over the values of `parts`, as a whole training step sees them.
struct OneChannel {
  Variant variant;

  Results statistics_of(const std::vector<double>& x) const {
    OpCase op_case = statistics_case({std::ssize(x), 1, 1, 1});
    op_case.operands[0].values = x;
    return run(op_case, variant);
  }
  Results merged(const Results& a, double count, const Results& b, double part_count) const {
    OpCase op_case = merge_case("one channel", 0, {0, 0});
    std::vector<double> parts;
    for (const auto& [part, size] : {std::pair{&a, count}, {&b, part_count}}) {
      parts.insert(parts.end(), 5, values(*part, "mean")[0]);
      parts.insert(parts.end(), 5, values(*part, "m2")[0]);
      parts.push_back(size);
    }
    op_case.operands[1].values = parts;
    const std::vector<double> total = values(run(op_case, variant), "total");
    CHECK(total[10] == count + part_count);
    return {{"mean", {total[0]}}, {"m2", {total[5]}}};
  }
  // Running mean and variance, from 0 and 1.
  void update(const Results& batch, double count, double& mean, double& variance) const {
    OpCase op_case = update_case(1, count, 0.1);
    op_case.operands[0].values = {values(batch, "mean")[0]};
    op_case.operands[1].values = {values(batch, "m2")[0]};
    op_case.operands[2].values = {mean};
    op_case.operands[3].values = {variance};
    const Results results = run(op_case, variant);
    mean = values(results, "running_mean")[0];
    variance = values(results, "running_var")[0];
  }
};

bool near(double actual, double expected, double allowed = 1e-6) {
  return std::abs(actual - expected) <= allowed;
}

std::vector<Variant> all_variants() {
  std::vector<Variant> variants = float_variants(statistics_case({8, 1, 1, 1}));
  variants.push_back({"ref:0", DType::f64});
  return variants;
}

}  // namespace

TEST_CASE("batch norm: backends agree with the reference") {
  for (const BatchNormCase& of : shapes()) {
    check(statistics_case(of));
    for (bool relu : {false, true}) {
      check(backward_reduce_case(of, relu));
      for (bool other : {false, true}) {
        check(apply_case(of, other, relu, of.count()));
        check(backward_apply_case(of, relu, other, false));
        check(backward_apply_case(of, relu, other, true));
      }
    }
  }
}

TEST_CASE("batch norm: merge and update agree with the reference") {
  check(merge_case("one part", 3, {5}));
  check(merge_case("an empty part", 3, {0}));
  check(merge_case("nothing yet", 0, {5}));
  check(merge_case("three parts, one of them empty", 0, {2, 0, 5}));
  check(merge_case("nothing at all", 0, {0, 0}));
  check(update_case(5, 8, 0.1));
  check(update_case(64, 2, 1));
}

TEST_CASE("batch norm: running statistics are statistics too, with count 1") {
  check(apply_case({2, 5, 3, 3}, false, false, 1));
}

TEST_CASE("batch norm: a channel far from zero keeps its variance") {
  // In double throughout: 4096 + {0, 1, 2, 3} / 1024 has m2 5 / 1024^2.
  for (const Variant& variant : all_variants()) {
    INFO(to_string(variant));
    std::vector<double> x;
    for (int i = 0; i < 4; ++i) x.push_back(4096 + i / 1024.0);
    const Results results = OneChannel{variant}.statistics_of(x);
    CHECK(near(values(results, "mean")[0], 4096 + 1.5 / 1024, 1e-12));
    CHECK(near(values(results, "m2")[0], 5.0 / 1024 / 1024, 1e-12));
  }
}

TEST_CASE("batch norm: running statistics after two micro-batches") {
  const std::vector<double> first = {0, 1, 2, 3}, second = {4, 5, 6, 7};
  for (const Variant& variant : all_variants()) {
    INFO(to_string(variant));
    const OneChannel channel{variant};
    const Results a = channel.statistics_of(first), b = channel.statistics_of(second);
    double mean = 0, variance = 1;
    channel.update(a, 4, mean, variance);
    channel.update(b, 4, mean, variance);
    CHECK(near(mean, 0.685));
    CHECK(near(variance, 1.1266666667));
    mean = 0, variance = 1;
    channel.update(channel.merged(a, 4, b, 4), 8, mean, variance);
    CHECK(near(mean, 0.35));
    CHECK(near(variance, 1.5));
  }
}

TEST_CASE("batch norm: running statistics after a short batch") {
  for (const Variant& variant : all_variants()) {
    INFO(to_string(variant));
    const OneChannel channel{variant};
    const Results a = channel.statistics_of({0, 1, 2}), b = channel.statistics_of({3, 4});
    double mean = 0, variance = 1;
    channel.update(a, 3, mean, variance);
    channel.update(b, 2, mean, variance);
    CHECK(near(mean, 0.44));
    CHECK(near(variance, 0.95));
    mean = 0, variance = 1;
    channel.update(channel.merged(a, 3, b, 2), 5, mean, variance);
    CHECK(near(mean, 0.2));
    CHECK(near(variance, 1.15));
  }
}

TEST_CASE("batch norm: parts of unequal size merge to the statistics of all") {
  for (const Variant& variant : all_variants()) {
    INFO(to_string(variant));
    const OneChannel channel{variant};
    const Results all =
        channel.merged(channel.statistics_of({0, 1, 2}), 3, channel.statistics_of({7}), 1);
    CHECK(near(values(all, "mean")[0], 2.5));
    CHECK(near(values(all, "m2")[0] / 4, 7.25));
    double mean = 0, variance = 1;
    channel.update(all, 4, mean, variance);
    CHECK(near(mean, 0.25));
    CHECK(near(variance, 1.8666666667));
  }
}

TEST_CASE("batch norm: eight values come out normalised") {
  for (const Variant& variant : all_variants()) {
    INFO(to_string(variant));
    OpCase op_case = apply_case({2, 1, 2, 2}, false, false, 8);
    op_case.operands[0].values = {0, 1, 2, 3, 4, 5, 6, 7};
    op_case.operands[1].values = {1};    // gamma
    op_case.operands[2].values = {0};    // beta
    op_case.operands[3].values = {3.5};  // mean
    op_case.operands[4].values = {42};   // m2
    const Results results = run(op_case, variant);
    CHECK(near(values(results, "y")[0], -1.527524));
    CHECK(near(values(results, "y")[7], 1.527524));
  }
}

namespace {

// Batch norm with residual, and ReLU where asked for, forward and backward in one case.
OpCase whole_case(const std::string& key, bool relu, bool training) {
  const BatchNormCase of{3, 5, 4, 2};
  OpCase result{key, OpClass::normalisation};
  for (const char* image : {"x", "residual", "dy"}) result.input(image, of.x());
  result.input("gamma", {5}).input("beta", {5});
  std::vector<double> variance = uniform(key + "/var", 5);
  for (double& value : variance) value += 0.5;
  result.in_place("running_mean", {5}, Slot::plain, signed_values(key + "/mean", 5));
  result.in_place("running_var", {5}, Slot::plain, variance);
  // Frozen statistics are the running ones, which are f64 where the backend keeps them so.
  result.operands[5].dtype = result.operands[6].dtype = DType::f64;
  for (const char* sum : {"mean", "m2", "sum_dz", "sum_dz_xhat"}) {
    result.scratch_of(DType::f64, sum, {5}, Slot::plain);
    if (std::string(sum).starts_with("sum")) result.operands.back().use = Use::output;
  }
  for (const char* image : {"y", "dx", "dresidual"}) result.output(image, of.x());
  return result.run([=](const Launch& l) {
    BatchNormStatistics used{l["running_mean"], l["running_var"], 1};
    if (training) {
      l.kernels.batch_norm_statistics(l.stream, of.shape(), l["x"], l["mean"], l["m2"]);
      used = statistics(l, of.count());
      l.kernels.batch_norm_update(l.stream, 5, used, 0.1, l["running_mean"], l["running_var"]);
    }
    l.kernels.batch_norm_apply(l.stream, of.shape(), l["x"], used, kEpsilon, l["gamma"], l["beta"],
                               l["residual"], relu, l["y"], {});
    l.kernels.batch_norm_backward_reduce(l.stream, of.shape(), l["x"], l["y"], {}, l["dy"], used,
                                         kEpsilon, relu, l["sum_dz"], l["sum_dz_xhat"]);
    l.kernels.batch_norm_backward_apply(
        l.stream, of.shape(), l["x"], l["y"], {}, l["dy"], used, kEpsilon, relu, l["gamma"],
        training ? l["sum_dz"] : Buffer{}, training ? l["sum_dz_xhat"] : Buffer{}, l["dx"],
        l["dresidual"]);
  });
}

}  // namespace

TEST_CASE("batch norm: forward and backward as PyTorch") {
  const std::vector<std::string> frozen = {"y", "dx", "sum_dz", "sum_dz_xhat", "dresidual"};
  std::vector<std::string> training = frozen;
  training.insert(training.end(), {"running_mean", "running_var"});
  auto hold = [](const std::string& key, bool relu, bool train, const auto& results) {
    check_digests(whole_case(key, relu, train), torch_values(key, results));
  };
  hold("batch_norm train", false, true, training);
  hold("batch_norm train relu", true, true, training);
  hold("batch_norm frozen relu", true, false, frozen);
}

}  // namespace convoy::testing
