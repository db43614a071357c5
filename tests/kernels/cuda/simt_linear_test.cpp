// Linear layers in fp32 by tiles: tails, both tile sizes, split sums.
#include "kernels/cuda/simt.h"
#include "tests/kernels/cuda/gpu_name.h"
#include "tests/support/catch.h"
#include "tests/support/op_case.h"

namespace convoy::testing {
namespace {

using CONVOY_GPU::SimtTileSize;

OpCase named(const LinearShape& s, const char* pass) {
  return OpCase{"simt linear " + std::to_string(s.rows) + " x " + std::to_string(s.in) + " to " +
                    std::to_string(s.out) + pass,
                OpClass::exact};
}

// Each pass through the seam on the reference, by tiles on the device.
void hold(OpCase op_case, std::function<void(const Launch&)> reference,
          std::function<bool(const Launch&)> by_tiles) {
  OpCase on_device = with_integers(op_case);
  on_device.run([&](const Launch& l) { CHECK(by_tiles(l)); });
  const OpCase expected = with_integers(op_case.run(std::move(reference)));
  const Variant device{kGpuName, DType::f32};
  compare(on_device, device, run(on_device, device), run(expected, {"ref:0", DType::f64}));
}

void check_shape(const LinearShape& s, SimtTileSize tile) {
  hold(
      named(s, " forward")
          .input("x", {s.rows, s.in})
          .input("w", {s.out, s.in})
          .input("b", {s.out})
          .output("y", {s.rows, s.out}),
      [=](const Launch& l) {
        l.kernels.linear_forward(l.stream, s, l["x"], l["w"], l["b"], l["y"]);
      },
      [=](const Launch& l) {
        return CONVOY_GPU::simt_linear_forward(l.stream, s, l["x"], l["w"], l["b"], l["y"], tile);
      });
  hold(
      named(s, " input gradient")
          .input("dy", {s.rows, s.out})
          .input("w", {s.out, s.in})
          .output("dx", {s.rows, s.in}),
      [=](const Launch& l) {
        l.kernels.linear_input_gradient(l.stream, s, l["dy"], l["w"], l["dx"]);
      },
      [=](const Launch& l) {
        return CONVOY_GPU::simt_linear_input_gradient(l.stream, s, l["dy"], l["w"], l["dx"], tile);
      });
  hold(
      named(s, " weight gradient")
          .input("x", {s.rows, s.in})
          .input("dy", {s.rows, s.out})
          .output("dw", {s.out, s.in}),
      [=](const Launch& l) {
        l.kernels.linear_weight_gradient(l.stream, s, l["x"], l["dy"], l["dw"], {});
      },
      [=](const Launch& l) {
        return CONVOY_GPU::simt_linear_weight_gradient(l.stream, s, l["x"], l["dy"], l["dw"], tile);
      });
}

}  // namespace

TEST_CASE("simt linear: tails of rows, columns and depth, both tiles") {
  for (const LinearShape& shape : {LinearShape{1, 4, 4},
                                   {5, 12, 20},
                                   {130, 68, 132},
                                   {64, 8, 64},
                                   {3, 2048, 12},
                                   {600, 4, 36}}) {
    check_shape(shape, SimtTileSize::small);
    check_shape(shape, SimtTileSize::large);
  }
}

TEST_CASE("simt linear: rows that are no vectors, and no rows, are left alone") {
  Stream& stream = context(kGpuName).default_stream();
  auto applies = [&](const LinearShape& shape) {
    return CONVOY_GPU::simt_linear_forward(stream, shape, {}, {}, {}, {});
  };
  CHECK(!applies({4, 6, 8}));
  CHECK(!applies({4, 8, 10}));
  CHECK(!applies({0, 8, 8}));
  CHECK(!applies({std::int64_t{1} << 31, 8, 8}));
}

}  // namespace convoy::testing
