// Pooled memory of one device. A freed block is handed out again at once to the stream that used
// it: streams run in order, so its old users come first. Large segments are split and merged again.
//
//     segment | used 4 MiB | free 2 MiB | used 1 MiB | free 25 MiB |     free blocks: by stream, by
//     size
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "kernels/base/device.h"
#include "kernels/base/stream.h"

namespace convoy {

/// Bytes, but for the two counters of calls.
struct MemoryStatistics {
  std::size_t in_use = 0;       ///< held by blocks now
  std::size_t peak_in_use = 0;  ///< most ever held since the last reset_peak()
  std::size_t reserved = 0;     ///< taken from the system, in use or kept for later
  std::size_t peak_reserved = 0;
  std::uint64_t requests = 0;         ///< calls of allocate()
  std::uint64_t system_requests = 0;  ///< of these, calls that had to ask the system
};

/// Thread-safe. Outlives its blocks.
class MemoryPool {
  struct Chunk;

 public:
  /// Where a pool's memory comes from: memory of the device, aligned to 2 MiB where it is larger.
  struct Source {
    std::function<void*(std::size_t bytes)> take;  // null if there is none
    std::function<void(void* data, std::size_t bytes)> give_back;
    /// Set: each block is taken by itself, with the very bytes asked for, and goes back by this,
    /// after the work that `stream` has by then (null: that is over); false if that must be tried
    /// again later. For checks of accesses.
    std::function<bool(void* data, Stream* stream)> give_back_block = {};
    /// Set: memory that ends where `data` begins, null if that is not free. Pieces that adjoin go
    /// back in one call. A pool of one piece that grows wastes least.
    std::function<void*(void* data, std::size_t bytes)> take_before = {};
  };

  /// Memory of one owner; returns to the pool when destroyed. Move-only.
  class Block {
   public:
    Block() = default;
    Block(Block&& other) noexcept;
    Block& operator=(Block&& other) noexcept;
    ~Block();

    void* data() const;
    /// At least the bytes asked for.
    std::size_t bytes() const;
    /// The block stays out of use after its release until `event`: for users on other streams.
    void use_until(Event event);

   private:
    friend class MemoryPool;
    Block(MemoryPool* pool, Chunk* chunk) : pool_(pool), chunk_(chunk) {}
    MemoryPool* pool_ = nullptr;
    Chunk* chunk_ = nullptr;
    std::vector<Event> events_;
  };

  /// Bytes that lie elsewhere and count as in use here while it lives. Move-only.
  class Share {
   public:
    Share() = default;
    Share(Share&& other) noexcept
        : pool_(std::exchange(other.pool_, nullptr)), bytes_(other.bytes_) {}
    Share& operator=(Share&& other) noexcept {
      std::swap(pool_, other.pool_);
      std::swap(bytes_, other.bytes_);
      return *this;
    }
    ~Share();

   private:
    friend class MemoryPool;
    Share(MemoryPool* pool, std::size_t bytes) : pool_(pool), bytes_(bytes) {}
    MemoryPool* pool_ = nullptr;
    std::size_t bytes_ = 0;
  };

  MemoryPool(Device device, Source source);
  ~MemoryPool();

  /// At least `bytes`, aligned to 64, for work of `stream`. `resource` past the cap or where the
  /// system has no more.
  Block allocate(std::size_t bytes, Stream* stream);
  /// The same, but the block does not count as in use: somebody else has a share() for it.
  Block allocate_uncounted(std::size_t bytes, Stream* stream);
  /// As allocate() counts a block of `bytes`, without one. `resource` past the cap.
  Share share(std::size_t bytes);
  /// Most bytes that blocks may hold at a time; 0 is no cap.
  void set_cap(std::size_t bytes);
  MemoryStatistics statistics() const;
  /// Starts the peaks anew at what is held now.
  void reset_peak();
  /// Gives memory that no block holds back to the system. Waits for the streams that used it.
  void trim();
  /// What `stream` has freed stays its own until as many calls of let_go(): captured work uses it.
  void hold(Stream* stream);
  void let_go(Stream* stream);
  /// `stream` has finished and goes: what it has freed is anybody's.
  void retire(Stream* stream);

 private:
  struct BySize {
    using is_transparent = void;
    bool operator()(const Chunk* a, const Chunk* b) const;
    bool operator()(const Chunk* a, std::size_t bytes) const;
  };
  using FreeList = std::set<Chunk*, BySize>;

  Chunk* take(std::size_t size, Stream* stream, std::unique_lock<std::mutex>& lock);
  void check_cap(std::size_t asked, std::size_t bytes) const;
  void count(std::size_t bytes);
  std::size_t size_of_block(std::size_t bytes) const;
  void release(Chunk* chunk, std::vector<Event> events);
  void collect_pending();
  bool whole_blocks() const { return source_.give_back_block != nullptr; }
  void send_back_leaving(std::unique_lock<std::mutex>& lock);
  void forget(const std::vector<Chunk*>& chunks);
  void make_free(Chunk* chunk);
  void insert_free(Chunk* chunk);
  Chunk* take_free(std::size_t bytes, Stream* stream);
  Chunk* take_segment(std::size_t bytes, Stream* stream, std::unique_lock<std::mutex>& lock);
  Chunk* grow_segment(std::size_t bytes, Stream* stream);
  void count_taken(std::size_t bytes);
  void split(Chunk* chunk, std::size_t bytes);
  Chunk* merge(Chunk* left, Chunk* right);
  void trim(std::unique_lock<std::mutex>& lock);

  struct Pending {
    Chunk* chunk;
    std::vector<Event> events;
  };

  const Device device_;
  const Source source_;
  mutable std::mutex mutex_;
  std::size_t cap_ = 0;
  MemoryStatistics statistics_;
  std::set<Stream*> live_;
  std::multiset<Stream*> held_;
  std::map<Stream*, FreeList> free_;  // null: of streams that are gone
  std::vector<Pending> pending_;
  Chunk* first_ = nullptr;       // of the last segment that was taken, which may grow before it
  std::vector<Chunk*> leaving_;  // of whole blocks: on their way back to the system
};

}  // namespace convoy
