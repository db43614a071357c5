// Batch norm over several replicas: each is a thread with a device of its own. Right values are the
// closed forms of one channel, and one device that has all images.
#include <cmath>

#include "engine/autograd/backward.h"
#include "engine/autograd/grad_mode.h"
#include "engine/nn/layers.h"
#include "engine/ops/ops.h"
#include "kernels/base/error.h"
#include "tests/comm/thread_group.h"
#include "tests/support/catch.h"
#include "tests/support/expect_error.h"
#include "tests/support/formula.h"

namespace convoy::testing {
namespace {

using Values = std::vector<double>;
using Batches = std::vector<Values>;

// A device of each rank's own. cpu:0 is nobody's, since modules are made there: behind a collective
// in its stream one rank would wait for another that waits for it.
TensorOptions on_rank(int rank, DType dtype) {
  return {dtype, Device(dtype == DType::f64 ? DeviceType::ref : DeviceType::cpu, rank + 1)};
}

// What one rank has of one channel after its micro-batches.
struct Seen {
  double mean = 0, var = 0, first = 0;
  std::int64_t tracked = 0;
  friend bool operator==(const Seen&, const Seen&) = default;
};

// Each rank feeds its row of micro-batches.
std::vector<Seen> feed(const std::vector<Batches>& ranks, BatchNormMode mode, DType dtype) {
  std::vector<Seen> seen(ranks.size());
  run_ranks(static_cast<int>(ranks.size()), {}, [&](HostCommunicator& group) {
    const auto rank = static_cast<std::size_t>(group.rank());
    const TensorOptions options = on_rank(group.rank(), dtype);
    BatchNorm2d norm(1);
    norm.to(options.device);
    norm.to(options.dtype);
    norm.set_mode(mode);
    norm.set_group(&group);
    for (const Values& values : ranks[rank]) {
      const Tensor y = norm(Tensor::from(values, {std::ssize(values), 1, 1, 1}, options));
      if (y.numel() > 0) seen[rank].first = y.to_vector<double>()[0];
    }
    norm.commit();
    seen[rank].mean = norm.running_mean.item();
    seen[rank].var = norm.running_var.item();
    seen[rank].tracked = norm.num_batches_tracked;
  });
  return seen;
}

void check_running(const std::vector<Seen>& seen, double mean, double var, std::int64_t tracked,
                   double tolerance) {
  for (const Seen& each : seen) {
    INFO(each.mean << " and " << each.var << ", expected " << mean << " and " << var);
    CHECK(std::abs(each.mean - mean) <= tolerance);
    CHECK(std::abs(each.var - var) <= tolerance);
    CHECK(each.tracked == tracked);
    CHECK(each.mean == seen[0].mean);  // the same bits
    CHECK(each.var == seen[0].var);
  }
}

// A batch of images over ranks, and what comes out of it, in the order of the images.
struct Case {
  std::vector<std::int64_t> images;  // of each rank
  DType dtype = DType::f64;
  Shape image{1, 3, 2, 2};
  Values x = values("x"), residual = values("residual"), dy = values("dy");
  Values weight = {1.5, -0.5, 2}, bias = {0.25, 0, -1};

  std::int64_t total() const {
    std::int64_t sum = 0;
    for (std::int64_t part : images) sum += part;
    return sum;
  }
  Values values(const std::string& name) const {
    return signed_values("sync/" + name, total() * image.count());
  }
};

struct Results {
  Values y, dx, dresidual, dweight, dbias, mean, var;
};

Tensor part_of(const Values& all, const Shape& image, std::int64_t first, std::int64_t images,
               const TensorOptions& options) {
  const auto begin = all.begin() + first * image.count();
  return Tensor::from(Values(begin, begin + images * image.count()), image.with(0, images),
                      options);
}

// Images from `first` on, normalised over `group`, null for these alone.
Results run_part(const Case& of, std::int64_t first, std::int64_t images, Communicator* group,
                 const TensorOptions& options) {
  auto leaf = [](Tensor tensor) { return tensor.set_requires_grad(); };
  const Tensor x = leaf(part_of(of.x, of.image, first, images, options));
  const Tensor residual = leaf(part_of(of.residual, of.image, first, images, options));
  const Tensor weight = leaf(Tensor::from(of.weight, {3}, options));
  const Tensor bias = leaf(Tensor::from(of.bias, {3}, options));
  const Tensor mean = Tensor::zeros({3}, options), var = Tensor::ones({3}, options);
  BatchNormOptions norm;
  norm.relu = true;
  norm.group = group;
  const Tensor y = batch_norm(x, weight, bias, mean, var, norm, residual);
  backward({y}, {part_of(of.dy, of.image, first, images, options)});
  auto read = [](const Tensor& tensor) { return tensor.to_vector<double>(); };
  return {read(y),    read(x.grad()), read(residual.grad()), read(weight.grad()), read(bias.grad()),
          read(mean), read(var)};
}

std::vector<Results> run_case(const Case& of) {
  std::vector<Results> results(of.images.size());
  run_ranks(static_cast<int>(of.images.size()), {}, [&](HostCommunicator& group) {
    const auto rank = static_cast<std::size_t>(group.rank());
    std::int64_t first = 0;
    for (std::size_t r = 0; r < rank; ++r) first += of.images[r];
    results[rank] = run_part(of, first, of.images[rank], &group, on_rank(group.rank(), of.dtype));
  });
  return results;
}

Values chained(const std::vector<Results>& parts, Values Results::*values) {
  Values all;
  for (const Results& part : parts)
    all.insert(all.end(), (part.*values).begin(), (part.*values).end());
  return all;
}

Values summed(const std::vector<Results>& parts, Values Results::*values) {
  Values sum((parts[0].*values).size());
  for (const Results& part : parts) {
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += (part.*values)[i];
  }
  return sum;
}

void check_close(const char* what, const Values& actual, const Values& expected, double tolerance) {
  INFO(what);
  REQUIRE(actual.size() == expected.size());
  double worst = 0;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    worst = std::max(worst, std::abs(actual[i] - expected[i]));
  }
  INFO("largest error " << worst);
  CHECK(worst <= tolerance);
}

// Sum of y * dy over all ranks.
double value_of(const Case& of) {
  const Values y = chained(run_case(of), &Results::y);
  double sum = 0;
  for (std::size_t i = 0; i < y.size(); ++i) sum += y[i] * of.dy[i];
  return sum;
}

Values differences(const Case& of, Values Case::*leaf) {
  constexpr double kStep = 1e-6;
  Values result;
  for (std::size_t i = 0; i < (of.*leaf).size(); ++i) {
    Case up = of, down = of;
    (up.*leaf)[i] += kStep;
    (down.*leaf)[i] -= kStep;
    result.push_back((value_of(up) - value_of(down)) / (2 * kStep));
  }
  return result;
}

}  // namespace

TEST_CASE("batch norm sync: two replicas with two micro-batches") {
  const std::vector<Batches> ranks = {{{0, 1}, {4, 5}}, {{2, 3}, {6, 7}}};
  for (DType dtype : {DType::f64, DType::f32}) {
    const double tolerance = dtype == DType::f64 ? 1e-12 : 1e-6;
    const std::vector<Seen> sync = feed(ranks, BatchNormMode::micro, dtype);
    check_running(sync, 0.685, 0.9 * (0.9 + 0.1 * 5 / 3) + 0.1 * 5 / 3, 2, tolerance);
    CHECK(std::abs(sync[0].first - -1.5 / std::sqrt(1.25 + 1e-5)) <= tolerance);  // of {4, 5, 6, 7}
    const std::vector<Seen> deferred = feed(ranks, BatchNormMode::deferred, dtype);
    check_running(deferred, 0.35, 1.5, 1, tolerance);
    CHECK(deferred[0].first == sync[0].first);
  }
}

TEST_CASE("batch norm sync: replicas of unequal size, one of them empty") {
  for (DType dtype : {DType::f64, DType::f32}) {
    const double tolerance = dtype == DType::f64 ? 1e-12 : 1e-6;
    // Mean 2.5, biased variance 7.25.
    for (const std::vector<Batches>& ranks : {std::vector<Batches>{{{0, 1, 2}}, {{7}}},
                                              {{{0, 1, 2}}, {{}}, {{7}}},
                                              {{{}}, {{0, 1, 2, 7}}},
                                              {{{0, 1, 2, 7}}}}) {
      for (BatchNormMode mode : {BatchNormMode::micro, BatchNormMode::deferred}) {
        INFO(ranks.size() << " ranks");
        const std::vector<Seen> seen = feed(ranks, mode, dtype);
        check_running(seen, 0.25, 0.9 + 0.1 * 29 / 3, 1, tolerance);
        const std::size_t first = ranks[0][0].empty() ? 1 : 0;
        CHECK(std::abs(seen[first].first - -2.5 / std::sqrt(7.25 + 1e-5)) <= tolerance);
      }
    }
  }
}

TEST_CASE("batch norm sync: a batch that is empty everywhere changes nothing") {
  check_running(feed({{{0, 2}, {}}, {{4, 6}, {}}}, BatchNormMode::micro, DType::f64), 0.3,
                0.9 + 0.1 * 20 / 3, 2, 1e-12);
}

TEST_CASE("batch norm sync: a single rank has the bits of no group") {
  Case of{{4}};
  const Results alone = run_part(of, 0, 4, nullptr, on_rank(0, DType::f64));
  const Results group = run_case(of)[0];
  CHECK(group.y == alone.y);
  CHECK(group.dx == alone.dx);
  CHECK(group.var == alone.var);
}

TEST_CASE("batch norm sync: outputs and gradients are those of one device with all images") {
  for (DType dtype : {DType::f64, DType::f32}) {
    for (const std::vector<std::int64_t>& images :
         {std::vector<std::int64_t>{3, 1}, {2, 0, 3}, {0, 4}}) {
      const Case of{images, dtype};
      const std::vector<Results> parts = run_case(of);
      const Results whole = run_part(of, 0, of.total(), nullptr, on_rank(0, DType::f64));
      const double tolerance = dtype == DType::f64 ? 1e-12 : 1e-5;
      INFO(images.size() << " ranks, " << name(dtype));
      check_close("y", chained(parts, &Results::y), whole.y, tolerance);
      check_close("dx", chained(parts, &Results::dx), whole.dx, tolerance);
      check_close("dresidual", chained(parts, &Results::dresidual), whole.dresidual, tolerance);
      // Each replica has the part of its own images: the all-reduce of gradients adds them.
      check_close("dweight", summed(parts, &Results::dweight), whole.dweight, tolerance);
      check_close("dbias", summed(parts, &Results::dbias), whole.dbias, tolerance);
      for (const Results& part : parts) {
        CHECK(part.mean == parts[0].mean);
        CHECK(part.var == parts[0].var);
        check_close("running variance", part.var, whole.var, tolerance);
      }
    }
  }
}

TEST_CASE("batch norm sync: gradients against differences through two ranks") {
  const Case of{{2, 1}};
  const std::vector<Results> parts = run_case(of);
  check_close("dx", chained(parts, &Results::dx), differences(of, &Case::x), 1e-7);
  check_close("dweight", summed(parts, &Results::dweight), differences(of, &Case::weight), 1e-7);
  check_close("dbias", summed(parts, &Results::dbias), differences(of, &Case::bias), 1e-7);
}

TEST_CASE("batch norm sync: one value per channel over all replicas is refused") {
  for (DType dtype : {DType::f64, DType::f32}) {
    expect_error(ErrorKind::usage, {"batch_norm", "1 value per channel", "all replicas"}, [&] {
      feed({{{5}}, {{}}}, BatchNormMode::deferred, dtype);
    });
  }
}

TEST_CASE("batch norm sync: frozen and evaluation ask no other rank") {
  auto group = make_thread_communicators(2);
  Sequential tree({std::make_shared<BatchNorm2d>(1)});
  set_batch_norm_group(tree, group[0].get());
  tree.eval();
  CHECK(tree(Tensor::ones({1, 1, 1, 1})).to_vector<float>().size() == 1);
  tree.train();
  set_batch_norm_mode(tree, BatchNormMode::frozen);
  CHECK(tree(Tensor::ones({1, 1, 1, 1})).to_vector<float>().size() == 1);
  set_batch_norm_group(tree, nullptr);
  set_batch_norm_mode(tree, BatchNormMode::micro);
  CHECK(tree(Tensor::ones({2, 1, 1, 1})).to_vector<float>().size() == 2);
}

}  // namespace convoy::testing
