// What `bench kernels` counts on emulated devices, in a program that is built with the checks: the
// kernels of a training step of ResNet-50 use sectors of memory in full and meet no bank conflicts.
#include "bench/kernels.h"
#include "tests/support/catch.h"

namespace convoy::testing {
namespace {

struct Totals {
  std::uint64_t actual = 0, ideal = 0;
};

Totals totals_of(const emulator::KernelFigures& kernel, bool is_shared) {
  Totals totals;
  for (const emulator::SiteFigures& site : kernel.sites) {
    if (site.is_shared != is_shared) continue;
    totals.actual += site.actual;
    totals.ideal += site.ideal;
  }
  return totals;
}

std::vector<emulator::KernelFigures> figures_of(DType dtype, bool tf32) {
  KernelBenchOptions options;
  options.device = Device("emu:0");
  options.cases = {.images = 1, .image_size = 32, .channel_divisor = 16, .dtype = dtype};
  options.tf32 = tf32;
  return bench_kernel_figures(options);
}

void check_all(DType dtype, bool tf32, std::size_t least_kernels) {
  const std::vector<emulator::KernelFigures> all = figures_of(dtype, tf32);
  CHECK(all.size() >= least_kernels);
  for (const emulator::KernelFigures& kernel : all) {
    INFO(name(dtype) << (tf32 ? " as tf32 " : " ") << kernel.kernel);
    const Totals global = totals_of(kernel, false), shared = totals_of(kernel, true);
    CHECK(global.ideal > 0);
    CHECK(double(global.actual) <= 1.1 * double(global.ideal));
    CHECK(shared.actual == shared.ideal);
  }
}

}  // namespace

TEST_CASE("bench kernels: sectors are used in full, without bank conflicts") {
  check_all(DType::f32, false, 25);
  check_all(DType::f32, true, 30);
  check_all(DType::bf16, false, 30);
}

TEST_CASE("bench kernels: plain twins, which use part of their sectors, are seen as such") {
  std::size_t wasteful = 0;
  for (const emulator::KernelFigures& kernel : figures_of(DType::f64, false)) {
    const Totals global = totals_of(kernel, false);
    if (double(global.actual) > 1.1 * double(global.ideal)) ++wasteful;
  }
  CHECK(wasteful > 0);
}

}  // namespace convoy::testing
