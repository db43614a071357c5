// What the ranks of an emulated NCCL communicator have in common: memory that threads and processes
// of a host map, without a name that could be left behind. Who makes the unique id makes a file in
// memory and keeps it open until all ranks have come; the others open it through /proc. Each rank
// holds a lock on its byte of the file, which the system takes back when its process ends.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "kernels/emulator/nccl_call.h"

namespace convoy::emulator::nccl {

inline constexpr int kMostRanks = 64;
inline constexpr std::size_t kChannelBytes = 256 << 10;

/// The life of a rank in a communicator.
enum class Life : std::uint32_t { absent, joined, finalized, aborted };

/// Notes on calls, told in turn: the reader of one is done before the next but one is written.
struct NotePair {
  std::atomic<std::uint64_t> told{0};  ///< how many notes so far
  CallNote notes[2];

  void tell(const CallNote& note) {
    const std::uint64_t number = told.load(std::memory_order_relaxed);
    notes[number % 2] = note;
    told.store(number + 1, std::memory_order_release);
  }
};

/// What a rank is in at the moment: nothing, a collective or a group of messages.
enum class Busy : std::uint32_t { no, collective, messages };

struct alignas(64) RankRecord {
  std::atomic<std::uint32_t> bell{0};  ///< rises when something that the rank waits for changes
  std::atomic<std::uint32_t> sleeping{0};
  std::atomic<Life> life{Life::absent};
  std::atomic<Busy> busy{Busy::no};
  std::int64_t process = 0;
  std::int32_t device = 0;
  NotePair collectives;
};

/// From one rank to another: bytes in order, and the notes of both sides' messages.
struct alignas(64) Channel {
  alignas(64) std::atomic<std::uint64_t> produced{0};
  alignas(64) std::atomic<std::uint64_t> consumed{0};
  alignas(64) NotePair sends;
  NotePair receipts;
  alignas(64) std::byte data[kChannelBytes];
};

struct alignas(64) Header {
  std::uint64_t token = 0;
  std::int32_t as_hardware = 0;
  std::int32_t seed = 0;
  std::atomic<std::int32_t> ranks{0};  ///< 0 until the first one comes
  std::atomic<std::int32_t> joined{0};
  RankRecord records[kMostRanks];
};

/// Where to find the memory; travels in a ncclUniqueId.
struct Address {
  std::uint64_t magic = 0;
  std::int64_t process = 0;
  std::int64_t descriptor = 0;
  std::uint64_t token = 0;
};

/// Makes the memory of a new communicator and keeps it open for those who come, until close_made().
Address make_memory();
/// All have come: the memory that this process made lives on in the ranks alone.
void close_made(const Address& address);

/// One rank's view. Mapped at once; unmapped at the end, when its lock goes too.
class Memory {
 public:
  /// Null where the memory cannot be reached or is another one.
  static std::unique_ptr<Memory> open(const Address& address);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  Header& header() const { return *header_; }
  RankRecord& record(int rank) const { return header_->records[rank]; }
  Channel& channel(int from, int to) const;
  /// Makes room for the channels of `ranks`; false where there is none.
  bool add_channels(int ranks);
  /// Locks the byte of `rank`; false if another has it.
  bool take(int rank);
  /// Whether the process of `rank`, which has joined, has ended.
  bool is_dead(int rank) const;

 private:
  Memory(int descriptor, Header* header) : descriptor_(descriptor), header_(header) {}

  int descriptor_;
  Header* header_;
  std::byte* channels_ = nullptr;
  std::size_t channel_bytes_ = 0;
  int ranks_ = 0;
};

/// Tells a rank that something has changed for it.
void ring(RankRecord& record);
/// Sleeps until the bell differs from `seen`, at most for some milliseconds.
void wait_for_bell(RankRecord& record, std::uint32_t seen);

}  // namespace convoy::emulator::nccl
