// Bytes read and written, as the system counts them.
#include "comm/io_count.h"

#include <fcntl.h>
#include <unistd.h>

#include "comm/sockets.h"
#include "tests/support/catch.h"

using namespace convoy;

TEST_CASE("io count: bytes of this process, but none of its own") {
  IoCount count;
  const std::uint64_t before = count.bytes();
  CHECK(before > 0);
  CHECK(count.bytes() == before);
  const Descriptor zero(::open("/dev/zero", O_RDWR | O_CLOEXEC));
  char buffer[1000];
  REQUIRE(::read(zero.get(), buffer, 700) == 700);
  CHECK(count.bytes() == before + 700);
  REQUIRE(::write(zero.get(), buffer, 1000) == 1000);
  CHECK(count.bytes() == before + 1700);
}
