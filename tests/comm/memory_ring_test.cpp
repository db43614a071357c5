#include "comm/memory_ring.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <thread>

#include "comm/waiter.h"
#include "tests/support/catch.h"
#include "tests/support/expect_error.h"

namespace convoy {
namespace {

/// One stretch of shared memory, mapped at two places as in two processes.
class TwoMappings {
 public:
  explicit TwoMappings(std::size_t bytes) : bytes_(bytes), file_(memfd_create("ring", 0)) {
    REQUIRE(ftruncate(file_, static_cast<off_t>(bytes)) == 0);
    for (void*& view : views_) {
      view = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
      REQUIRE(view != MAP_FAILED);
    }
  }
  ~TwoMappings() {
    for (void* view : views_) munmap(view, bytes_);
    close(file_);
  }
  TwoMappings(const TwoMappings&) = delete;
  TwoMappings& operator=(const TwoMappings&) = delete;
  void* view(int index) const { return views_[index]; }

 private:
  std::size_t bytes_;
  int file_;
  void* views_[2];
};

}  // namespace

TEST_CASE("pieces arrive in order and whole, through memory mapped at two places") {
  const RingShape shape{3, 100};
  const TwoMappings memory(MemoryRing::bytes(shape));
  RingSendEnd send(*MemoryRing::make(memory.view(0), shape));
  RingReceiveEnd receive(*MemoryRing::at(memory.view(1)));
  constexpr int kPieces = 2000;
  std::thread sender([&] {
    Waiter waiter(nullptr, nullptr, 0);
    for (int k = 0; k < kPieces; ++k) {
      const auto room = send.reserve(waiter);
      std::memset(room.data(), k % 251, k % 101);
      send.commit(k % 101);
    }
    send.flush(waiter);
  });
  int wrong = 0;
  Waiter waiter(nullptr, nullptr, 0);
  for (int k = 0; k < kPieces; ++k) {
    const auto piece = receive.front(waiter);
    wrong += piece.size() != static_cast<std::size_t>(k % 101);
    for (std::byte byte : piece) wrong += std::to_integer<int>(byte) != k % 251;
    receive.release();
  }
  sender.join();
  CHECK(wrong == 0);
}

TEST_CASE("a ring needs two slots of a cache line") {
  alignas(64) std::byte memory[4096];
  testing::check_error(
      [&] {
        MemoryRing::make(memory, {1, 64});
      },
      ErrorKind::usage, "ring: 1 slots of 64 bytes, expected at least 2 of 64");
}

}  // namespace convoy
