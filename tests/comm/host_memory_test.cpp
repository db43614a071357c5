#include "comm/host_memory.h"

#include <cstring>

#include "tests/support/catch.h"

namespace convoy {

TEST_CASE("memory of one process is found by its address, and read by another") {
  HostMemory mine, other;  // `other` maps it anew, as another process does
  const std::shared_ptr<std::byte> made = mine.make(1000);
  std::memcpy(made.get() + 100, "gradient", 9);

  const auto address = mine.find(made.get() + 100, 9);
  REQUIRE(address);
  CHECK(address->offset == 100);
  CHECK(mine.open(*address).get() == made.get() + 100);
  const auto seen = other.open(*address);
  REQUIRE(seen);
  CHECK(seen.get() != made.get() + 100);
  CHECK(std::memcmp(seen.get(), "gradient", 9) == 0);
  made.get()[100] = std::byte{'G'};
  CHECK(std::memcmp(seen.get(), "Gradient", 9) == 0);
  CHECK(other.open(*address) == seen);
}

TEST_CASE("values outside of what was made have no address") {
  HostMemory memory;
  const auto first = memory.make(1000);
  const auto second = memory.make(1000);
  const float own[2] = {};
  CHECK_FALSE(memory.find(own, sizeof own));
  CHECK(memory.find(second.get(), 1000));
  CHECK(memory.find(second.get() + 1000, 0));
  CHECK_FALSE(memory.find(first.get(), 5000));
  CHECK_FALSE(HostMemory().find(first.get(), 1));
}

TEST_CASE("memory that its maker is done with stays where it was opened, and opens no more") {
  HostMemory mine, other;
  auto made = mine.make(64);
  made.get()[5] = std::byte{7};
  const HostAddress address = *mine.find(made.get(), 64);
  const auto seen = other.open(address);
  made.reset();
  CHECK(seen.get()[5] == std::byte{7});
  CHECK_FALSE(HostMemory().open(address));
  CHECK_FALSE(mine.open(address));
  // Another memory may have the number of that descriptor by now.
  const auto next = mine.make(64);
  HostAddress wrong = address;
  wrong.memory.descriptor = mine.find(next.get(), 64)->memory.descriptor;
  CHECK_FALSE(HostMemory().open(wrong));
}

}  // namespace convoy
