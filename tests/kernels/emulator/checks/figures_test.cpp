#include "kernels/emulator/checks/figures.h"

#include <functional>

#include "tests/support/catch.h"

namespace convoy::emulator::checks {
namespace {

Request request(std::uint32_t bytes, const std::function<std::uintptr_t(int)>& offset) {
  Request result{~0u, bytes, {}};
  for (int lane = 0; lane < kLanes; ++lane) result.address[lane] = 1024 + offset(lane);
  return result;
}

bool operator==(const Cost& cost, const std::pair<int, int>& expected) {
  return int(cost.actual) == expected.first && int(cost.ideal) == expected.second;
}

using Expected = std::pair<int, int>;

TEST_CASE("wavefronts: different words of a bank, by parts of the warp for wide accesses") {
  CHECK((wavefronts(request(4, [](int lane) { return lane * 4; })) == Expected(1, 1)));
  CHECK((wavefronts(request(4, [](int) { return 20; })) == Expected(1, 1)));
  CHECK((wavefronts(request(4, [](int lane) { return lane * 128; })) == Expected(32, 1)));
  CHECK((wavefronts(request(4, [](int lane) { return lane * 132; })) == Expected(1, 1)));
  CHECK((wavefronts(request(2, [](int lane) { return lane * 2; })) == Expected(1, 1)));
  CHECK((wavefronts(request(8, [](int lane) { return lane * 8; })) == Expected(2, 2)));
  CHECK((wavefronts(request(16, [](int lane) { return lane * 16; })) == Expected(4, 4)));
  // Rows of 64 bytes: 8 lanes meet in 2 of them at a time; an XOR of the row spreads them.
  CHECK((wavefronts(request(16, [](int lane) { return lane * 64; })) == Expected(16, 4)));
  CHECK((wavefronts(request(16, [](int lane) { return lane * 128 + (lane & 7) * 16; })) ==
         Expected(4, 4)));
}

TEST_CASE("sectors: of 32 bytes that are touched, against those that hold as many bytes") {
  CHECK((sectors(request(4, [](int lane) { return lane * 4; })) == Expected(4, 4)));
  CHECK((sectors(request(4, [](int lane) { return 16 + lane * 4; })) == Expected(5, 4)));
  CHECK((sectors(request(4, [](int) { return 4; })) == Expected(1, 1)));
  CHECK((sectors(request(4, [](int lane) { return lane * 32; })) == Expected(32, 4)));
  CHECK((sectors(request(16, [](int lane) { return lane * 16; })) == Expected(16, 16)));
}

TEST_CASE("accesses of a warp are grouped by instruction and time") {
  BlockFigures figures;
  std::byte memory[8192];
  // As fibers run: each lane comes twice by instruction 5 before the next lane starts.
  for (int thread = 0; thread < 64; ++thread) {
    for (int time = 0; time < 2; ++time) {
      figures.add(thread, 5, memory + time * 4096 + thread * 4, 4, false, false);
    }
    if (thread < 8) figures.add(thread, 6, memory + thread * 4, 4, true, true);
  }
  std::map<std::uint64_t, SiteFigures> sites;
  figures.finish(sites);
  REQUIRE(sites.size() == 2);
  const SiteFigures& loads = sites.at(instruction_key(5, false));
  CHECK(loads.requests == 4);
  CHECK(loads.bytes == 512);
  CHECK(loads.ideal == 16);
  CHECK_FALSE(loads.is_write);
  const SiteFigures& stores = sites.at(instruction_key(6, true));
  CHECK(stores.requests == 1);
  CHECK(stores.bytes == 32);
  CHECK(stores.is_write);
}

}  // namespace
}  // namespace convoy::emulator::checks
