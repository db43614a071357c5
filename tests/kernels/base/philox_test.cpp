// The published answers of Philox 4x32-10 (kat_vectors of Random123).
#include "kernels/base/philox.h"

#include "tests/support/catch.h"

namespace convoy::testing {

TEST_CASE("philox: published answers") {
  CHECK(philox({}, {}) == PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  const std::uint32_t ones = 0xffffffff;
  CHECK(philox({ones, ones, ones, ones}, {ones, ones}) ==
        PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
        PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("philox: numbers from bits") {
  CHECK(unit_of(0) == 0);
  CHECK(unit_of(UINT64_MAX) == 1 - 0x1p-53);
  CHECK(unit_of(std::uint64_t{1} << 63) == 0.5);
  CHECK(low_half(0x0123456789abcdef) == 0x89abcdef);
  CHECK(high_half(0x0123456789abcdef) == 0x01234567);
}

}  // namespace convoy::testing
