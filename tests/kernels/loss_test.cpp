#include <fmt/format.h>

#include <cmath>

#include "kernels/base/error.h"
#include "tests/kernels/torch_values.h"
#include "tests/support/catch.h"

namespace convoy::testing {
namespace {

std::vector<double> labels(const std::string& name, std::int64_t rows, std::int64_t classes) {
  std::vector<double> result = uniform(name, rows);
  for (double& label : result) label = std::floor(label * double(classes));
  return result;
}

OpCase cross_entropy_case(const std::string& name, const CrossEntropyShape& shape, bool gradient) {
  OpCase result{name, OpClass::function};
  result.terms = double(shape.rows);
  std::vector<double> logits = signed_values(name + "/logits", shape.rows * shape.classes);
  for (double& value : logits) value *= 8;
  result.input("logits", {shape.rows, shape.classes}, Slot::plain, logits)
      .input_of(DType::i64, "labels", {shape.rows},
                labels(name + "/labels", shape.rows, shape.classes))
      .output("loss", {1});
  if (gradient) result.output("dlogits", {shape.rows, shape.classes});
  return result.full({"loss"}).run([=](const Launch& l) {
    l.kernels.softmax_cross_entropy(l.stream, shape, l["logits"], l["labels"], l["loss"],
                                    l["dlogits"]);
  });
}

OpCase mse_case(const std::string& name, std::int64_t count, double scale, bool gradient) {
  OpCase result{name, OpClass::sum};
  result.terms = double(count);
  result.input("x", {count}).input("target", {count}).output("loss", {1});
  if (gradient) result.output("dx", {count});
  return result.full({"loss"}).run([=](const Launch& l) {
    l.kernels.mse(l.stream, count, scale, l["x"], l["target"], l["loss"], l["dx"]);
  });
}

}  // namespace

TEST_CASE("softmax_cross_entropy: backends agree with the reference") {
  for (bool gradient : {true, false}) {
    for (CrossEntropyShape shape :
         {CrossEntropyShape{4, 10, 0, 0.25}, CrossEntropyShape{7, 1000, 0.1, 1.0 / 7},
          CrossEntropyShape{1, 2, 0, 1}, CrossEntropyShape{3, 1, 0.2, 1},
          CrossEntropyShape{33, 17, 0.1, 1.0 / 64}}) {
      check(
          cross_entropy_case(fmt::format("cross_entropy {}x{} smoothing {} gradient {}", shape.rows,
                                         shape.classes, shape.label_smoothing, gradient),
                             shape, gradient));
    }
  }
}

TEST_CASE("softmax_cross_entropy: smoothed and scaled as PyTorch") {
  const std::string key = "cross_entropy smooth";
  check_digests(cross_entropy_case(key, {5, 7, 0.1, 0.125}, true),
                torch_values(key, {"loss", "dlogits"}));
}

TEST_CASE("softmax_cross_entropy: large logits neither overflow nor lose the loss") {
  OpCase op_case = cross_entropy_case("cross_entropy large", {2, 2, 0, 0.5}, true);
  op_case.operands[0].values = {1e4, -1e4, 1e4, -1e4};
  op_case.operands[1].values = {0, 1};
  for (const Variant& variant : float_variants(op_case)) {
    compare(op_case, variant, run(op_case, variant),
            {{"loss", {1e4}}, {"dlogits", {0, 0, 0.5, -0.5}}});
  }
}

TEST_CASE("softmax_cross_entropy: a batch without rows has loss 0") {
  const OpCase op_case = cross_entropy_case("cross_entropy empty", {0, 3, 0, 1}, true);
  for (const Variant& variant : float_variants(op_case)) {
    CHECK(run(op_case, variant)["loss"] == std::vector<double>{0});
  }
}

TEST_CASE("softmax_cross_entropy: a label out of range is a data error, at the next wait") {
  for (double label : {-1.0, 3.0, 255.0}) {
    OpCase op_case = cross_entropy_case("cross_entropy label", {2, 3, 0, 1}, true);
    op_case.operands[1].values = {1, label};
    for (const Variant& variant : float_variants(op_case)) {
      INFO(to_string(variant));
      try {
        run(op_case, variant);
        FAIL("no error for label " << label);
      } catch (const Error& error) {
        CHECK(error.kind() == ErrorKind::data);
        CHECK(error.text().find(fmt::format("label {}", label)) != std::string::npos);
        CHECK(error.text().find("0..2") != std::string::npos);
      }
      op_case.operands[1].values = {1, 2};
      CHECK(std::isfinite(run(op_case, variant)["loss"][0]));
      op_case.operands[1].values = {1, label};
    }
  }
}

TEST_CASE("mse: backends agree with the reference") {
  for (bool gradient : {true, false}) {
    for (std::int64_t count : {1, 31, 5000}) {
      check(mse_case(fmt::format("mse {} gradient {}", count, gradient), count, 1.0 / double(count),
                     gradient));
    }
  }
}

TEST_CASE("mse: as PyTorch") {
  check_digests(mse_case("mse", 31, 1.0 / 31, true), torch_values("mse", {"loss", "dx"}));
}

}  // namespace convoy::testing
