#include <algorithm>
#include <fstream>
#include <string>

#include "kernels/emulator/grid.h"
#include "kernels/emulator/kernel_figures.h"
#include "tests/kernels/emulator/checks/planted_kernels.h"
#include "tests/support/catch.h"

namespace convoy::emulator::testing {
namespace {

using machine::Order;

// "planted_kernels.cpp:40": the line of the kernels' source that ends in "// MARK".
std::string place_of(const std::string& mark) {
  std::ifstream source(CONVOY_PLANTED_KERNELS);
  REQUIRE(source);
  std::string line;
  for (int number = 1; std::getline(source, line); ++number) {
    if (line.ends_with("// " + mark)) return "planted_kernels.cpp:" + std::to_string(number);
  }
  FAIL("no line ends in // " << mark);
  return {};
}

// "@MARK" up to a parenthesis or the end as the place of that line.
std::string with_places(const std::string& part) {
  const std::size_t at = part.find('@');
  if (at == part.npos) return part;
  const std::size_t end = std::min(part.find(')', at), part.size());
  return part.substr(0, at) + place_of(part.substr(at + 1, end - at - 1)) + part.substr(end);
}

std::string report_of(const Planted& planted, bool with_bug) {
  try {
    planted.run(with_bug);
  } catch (const DeviceFault& fault) {
    return fault.what();
  }
  return {};
}

TEST_CASE("each check reports its bug with file and line") {
  for (const Planted& planted : planted_kernels()) {
    const std::string report = report_of(planted, true);
    INFO(planted.name << ": " << report);
    for (const std::string& part : planted.report) {
      INFO("wanted: " << with_places(part));
      CHECK(report.find(with_places(part)) != report.npos);
    }
  }
}

TEST_CASE("each check is silent on the correct twin") {
  for (const Planted& planted : planted_kernels()) {
    INFO(planted.name);
    CHECK_THAT(report_of(planted, false), Catch::Equals(""));
  }
}

// The figures of the one kernel that `run` starts.
KernelFigures figures_of(const std::function<void()>& run) {
  start_kernel_figures();
  run();
  const std::vector<KernelFigures> all = take_kernel_figures();
  REQUIRE(all.size() == 1);
  return all[0];
}

SiteFigures site(const KernelFigures& figures, bool is_shared, bool is_write) {
  const auto found = std::ranges::find_if(figures.sites, [&](const SiteFigures& site) {
    return site.is_shared == is_shared && site.is_write == is_write;
  });
  REQUIRE(found != figures.sites.end());
  return *found;
}

TEST_CASE("bank conflicts: a transpose takes 32 wavefronts a request, with padded rows one") {
  for (bool padded : {false, true}) {
    const KernelFigures figures = figures_of([&] { run_transpose(padded); });
    const SiteFigures loads = site(figures, true, false);
    CHECK(loads.requests == 32);
    CHECK(loads.ideal == 32);
    CHECK(loads.actual == (padded ? 32 : 1024));
    CHECK(site(figures, true, true).actual == 32);
    CHECK(loads.place.starts_with("planted_kernels.cpp:"));
  }
}

TEST_CASE("sectors per request: 4 for neighbouring floats, 32 for scattered ones") {
  for (bool strided : {false, true}) {
    const KernelFigures figures = figures_of([&] { run_copy(strided); });
    for (bool is_write : {false, true}) {
      const SiteFigures moved = site(figures, false, is_write);
      CHECK(moved.requests == 1);
      CHECK(moved.ideal == 4);
      CHECK(moved.actual == (strided ? 32 : 4));
    }
    CHECK(figures.bytes_read == 128);
    CHECK(figures.compulsory_read == 128);
    CHECK(figures.compulsory_written == 128);
  }
}

TEST_CASE("the order of threads shows a missing barrier where no check looks") {
  const float right = 2016;  // 0 + 1 + ... + 63
  for (Order order : {Order::forward, Order::reverse, Order::random}) {
    CHECK(run_order_dependent(false, order) == right);
  }
  CHECK(run_order_dependent(true, Order::forward) != run_order_dependent(true, Order::reverse));
  CHECK(run_order_dependent(true, Order::random) != run_order_dependent(true, Order::reverse));
}

}  // namespace
}  // namespace convoy::emulator::testing
