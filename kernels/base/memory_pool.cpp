#include "kernels/base/memory_pool.h"

#include <algorithm>
#include <iterator>

#include "kernels/base/error.h"

namespace convoy {
namespace {

constexpr std::size_t kAlignment = 64;
constexpr std::size_t kSmallSegment = std::size_t{2} << 20;
// A rest below this stays with its block: it would only be found by requests that are tiny anyway.
constexpr std::size_t kLeastRest = 512;
// Sizes up to here can be rounded up and added without overflow.
constexpr std::size_t kMostBytes = SIZE_MAX / 4;

std::size_t round_up(std::size_t bytes, std::size_t to) {
  return (bytes + to - 1) / to * to;
}

}  // namespace

// A piece of a segment. Neighbours are linked by address, so that free ones can merge.
struct MemoryPool::Chunk {
  std::byte* data = nullptr;
  std::size_t bytes = 0;
  Stream* stream = nullptr;
  bool free = false;
  Chunk* previous = nullptr;
  Chunk* next = nullptr;
  bool counted = false;  // in use, by the statistics
};

bool MemoryPool::BySize::operator()(const Chunk* a, const Chunk* b) const {
  return a->bytes != b->bytes ? a->bytes < b->bytes : a->data < b->data;
}

bool MemoryPool::BySize::operator()(const Chunk* a, std::size_t bytes) const {
  return a->bytes < bytes;
}

MemoryPool::Block::Block(Block&& other) noexcept
    : pool_(std::exchange(other.pool_, nullptr)),
      chunk_(std::exchange(other.chunk_, nullptr)),
      events_(std::move(other.events_)) {}

MemoryPool::Block& MemoryPool::Block::operator=(Block&& other) noexcept {
  std::swap(pool_, other.pool_);
  std::swap(chunk_, other.chunk_);
  std::swap(events_, other.events_);
  return *this;
}

MemoryPool::Block::~Block() {
  if (chunk_) pool_->release(chunk_, std::move(events_));
}

void* MemoryPool::Block::data() const {
  return chunk_ ? chunk_->data : nullptr;
}

std::size_t MemoryPool::Block::bytes() const {
  return chunk_ ? chunk_->bytes : 0;
}

void MemoryPool::Block::use_until(Event event) {
  // A tensor that is copied in every step must not collect events for ever.
  std::erase_if(events_, [](const Event& each) { return each.done(); });
  events_.push_back(std::move(event));
}

MemoryPool::MemoryPool(Device device, Source source)
    : device_(device), source_(std::move(source)) {}

MemoryPool::~MemoryPool() {
  for (Pending& pending : pending_) {
    for (const Event& event : pending.events) event.wait();
  }
  std::unique_lock lock(mutex_);
  collect_pending();
  trim(lock);
}

MemoryPool::Share::~Share() {
  if (!pool_) return;
  const std::lock_guard lock(pool_->mutex_);
  pool_->statistics_.in_use -= bytes_;
}

MemoryPool::Block MemoryPool::allocate(std::size_t bytes, Stream* stream) {
  const std::size_t size = size_of_block(bytes);
  std::unique_lock lock(mutex_);
  check_cap(bytes, size);
  Chunk* chunk = take(size, stream, lock);
  chunk->counted = true;
  count(chunk->bytes);
  return Block(this, chunk);
}

MemoryPool::Block MemoryPool::allocate_uncounted(std::size_t bytes, Stream* stream) {
  const std::size_t size = size_of_block(bytes);
  std::unique_lock lock(mutex_);
  return Block(this, take(size, stream, lock));
}

MemoryPool::Share MemoryPool::share(std::size_t bytes) {
  const std::size_t size = size_of_block(bytes);
  const std::lock_guard lock(mutex_);
  check_cap(bytes, size);
  count(size);
  return Share(this, size);
}

std::size_t MemoryPool::size_of_block(std::size_t bytes) const {
  if (bytes > kMostBytes) {
    CONVOY_FAIL(resource, "{}: out of memory: {} bytes asked for, more than any device has",
                to_string(device_), bytes);
  }
  const std::size_t least = std::max<std::size_t>(bytes, 1);
  return whole_blocks() ? least : round_up(least, kAlignment);
}

void MemoryPool::check_cap(std::size_t asked, std::size_t bytes) const {
  if (cap_ == 0 || statistics_.in_use + bytes <= cap_) return;
  CONVOY_FAIL(resource, "{}: out of memory: {} bytes asked for, {} of the cap of {} bytes in use",
              to_string(device_), asked, statistics_.in_use, cap_);
}

void MemoryPool::count(std::size_t bytes) {
  statistics_.in_use += bytes;
  statistics_.peak_in_use = std::max(statistics_.peak_in_use, statistics_.in_use);
}

MemoryPool::Chunk* MemoryPool::take(std::size_t size, Stream* stream,
                                    std::unique_lock<std::mutex>& lock) {
  ++statistics_.requests;
  if (stream) live_.insert(stream);
  collect_pending();
  send_back_leaving(lock);
  Chunk* chunk = take_free(size, stream);
  if (!chunk) chunk = take_segment(size, stream, lock);
  split(chunk, size);
  chunk->free = false;
  chunk->counted = false;
  return chunk;
}

MemoryPool::Chunk* MemoryPool::take_free(std::size_t bytes, Stream* stream) {
  // Work of a retired stream is over, so that anybody may have its memory.
  for (Stream* owner : {stream, static_cast<Stream*>(nullptr)}) {
    auto list = free_.find(owner);
    if (list == free_.end()) continue;
    auto found = list->second.lower_bound(bytes);
    if (found == list->second.end()) continue;
    Chunk* chunk = *found;
    list->second.erase(found);
    chunk->stream = stream;
    return chunk;
  }
  return nullptr;
}

MemoryPool::Chunk* MemoryPool::take_segment(std::size_t bytes, Stream* stream,
                                            std::unique_lock<std::mutex>& lock) {
  const std::size_t size = whole_blocks() ? bytes : round_up(bytes, kSmallSegment);
  ++statistics_.system_requests;
  if (Chunk* grown = grow_segment(bytes, stream)) return grown;
  void* data = source_.take(size);
  if (!data) {
    trim(lock);
    data = source_.take(size);
  }
  if (!data) {
    CONVOY_FAIL(resource, "{}: out of memory: {} bytes asked for, the system gives no more than {}",
                to_string(device_), bytes, statistics_.reserved);
  }
  count_taken(size);
  first_ = new Chunk{static_cast<std::byte*>(data), size, stream, true, nullptr, nullptr};
  return first_;
}

MemoryPool::Chunk* MemoryPool::grow_segment(std::size_t bytes, Stream* stream) {
  if (!source_.take_before || !first_) return nullptr;
  // What is free there is part of the block; it is too small for all of it, or it had been found.
  const bool joins = first_->free && first_->stream == stream;
  const std::size_t missing = round_up(bytes - (joins ? first_->bytes : 0), kSmallSegment);
  auto* data = static_cast<std::byte*>(source_.take_before(first_->data, missing));
  if (!data) return nullptr;
  count_taken(missing);
  auto* chunk = new Chunk{data, missing, stream, true, nullptr, first_};
  first_->previous = chunk;
  if (joins) {
    free_[stream].erase(first_);
    merge(chunk, first_);
  }
  first_ = chunk;
  return chunk;
}

void MemoryPool::count_taken(std::size_t bytes) {
  statistics_.reserved += bytes;
  statistics_.peak_reserved = std::max(statistics_.peak_reserved, statistics_.reserved);
}

void MemoryPool::split(Chunk* chunk, std::size_t bytes) {
  if (chunk->bytes - bytes < kLeastRest) return;
  auto* rest =
      new Chunk{chunk->data + bytes, chunk->bytes - bytes, chunk->stream, true, chunk, chunk->next};
  if (rest->next) rest->next->previous = rest;
  chunk->next = rest;
  chunk->bytes = bytes;
  insert_free(rest);
}

void MemoryPool::insert_free(Chunk* chunk) {
  chunk->free = true;
  free_[chunk->stream].insert(chunk);
}

MemoryPool::Chunk* MemoryPool::merge(Chunk* left, Chunk* right) {
  left->bytes += right->bytes;
  left->next = right->next;
  if (left->next) left->next->previous = left;
  delete right;
  return left;
}

void MemoryPool::release(Chunk* chunk, std::vector<Event> events) {
  std::unique_lock lock(mutex_);
  if (chunk->counted) statistics_.in_use -= chunk->bytes;
  const bool pending =
      std::any_of(events.begin(), events.end(), [](const Event& event) { return !event.done(); });
  if (pending) {
    pending_.push_back({chunk, std::move(events)});
    return;
  }
  make_free(chunk);
  send_back_leaving(lock);
}

void MemoryPool::send_back_leaving(std::unique_lock<std::mutex>& lock) {
  std::vector<Chunk*> of_nobody;
  std::erase_if(leaving_, [&](Chunk* chunk) {
    if (held_.contains(chunk->stream)) return false;
    if (!live_.contains(chunk->stream)) {
      of_nobody.push_back(chunk);
      return true;
    }
    if (!source_.give_back_block(chunk->data, chunk->stream)) return false;
    forget({chunk});
    return true;
  });
  // Without the lock: the system may wait for streams whose work releases blocks.
  if (of_nobody.empty()) return;
  lock.unlock();
  const auto staying = std::partition(of_nobody.begin(), of_nobody.end(), [this](Chunk* chunk) {
    return source_.give_back_block(chunk->data, nullptr);
  });
  lock.lock();
  leaving_.insert(leaving_.end(), staying, of_nobody.end());
  forget(std::vector<Chunk*>(of_nobody.begin(), staying));
}

void MemoryPool::forget(const std::vector<Chunk*>& chunks) {
  for (Chunk* chunk : chunks) {
    statistics_.reserved -= chunk->bytes;
    if (chunk == first_) first_ = nullptr;
    delete chunk;
  }
}

void MemoryPool::make_free(Chunk* chunk) {
  if (whole_blocks()) return leaving_.push_back(chunk);
  if (!live_.contains(chunk->stream)) chunk->stream = nullptr;
  FreeList& list = free_[chunk->stream];
  auto joins = [chunk](Chunk* other) {
    return other && other->free && other->stream == chunk->stream;
  };
  if (joins(chunk->next)) {
    list.erase(chunk->next);
    merge(chunk, chunk->next);
  }
  if (joins(chunk->previous)) {
    list.erase(chunk->previous);
    chunk = merge(chunk->previous, chunk);
  }
  insert_free(chunk);
}

void MemoryPool::hold(Stream* stream) {
  std::lock_guard lock(mutex_);
  held_.insert(stream);
}

void MemoryPool::let_go(Stream* stream) {
  std::lock_guard lock(mutex_);
  const auto found = held_.find(stream);
  CONVOY_DCHECK(found != held_.end(), "{}: let_go() of a stream that holds nothing",
                to_string(device_));
  held_.erase(found);
}

void MemoryPool::retire(Stream* stream) {
  std::lock_guard lock(mutex_);
  live_.erase(stream);
  auto list = free_.find(stream);
  if (list == free_.end()) return;
  const FreeList chunks = std::move(list->second);
  free_.erase(list);
  // Its neighbours may be free since another stream went: make_free() joins them.
  for (Chunk* chunk : chunks) make_free(chunk);
}

void MemoryPool::collect_pending() {
  auto waiting = std::partition(pending_.begin(), pending_.end(), [](const Pending& pending) {
    return std::any_of(pending.events.begin(), pending.events.end(),
                       [](const Event& event) { return !event.done(); });
  });
  for (auto it = waiting; it != pending_.end(); ++it) make_free(it->chunk);
  pending_.erase(waiting, pending_.end());
}

void MemoryPool::set_cap(std::size_t bytes) {
  std::lock_guard lock(mutex_);
  cap_ = bytes;
}

MemoryStatistics MemoryPool::statistics() const {
  std::lock_guard lock(mutex_);
  return statistics_;
}

void MemoryPool::reset_peak() {
  std::lock_guard lock(mutex_);
  statistics_.peak_in_use = statistics_.in_use;
  statistics_.peak_reserved = statistics_.reserved;
}

void MemoryPool::trim() {
  std::unique_lock lock(mutex_);
  collect_pending();
  trim(lock);
}

void MemoryPool::trim(std::unique_lock<std::mutex>& lock) {
  send_back_leaving(lock);
  std::vector<Chunk*> whole;
  std::vector<Event> last_uses;
  for (auto& [stream, list] : free_) {
    if (held_.contains(stream)) continue;
    const std::size_t before = whole.size();
    std::copy_if(list.begin(), list.end(), std::back_inserter(whole),
                 [](const Chunk* chunk) { return !chunk->previous && !chunk->next; });
    for (std::size_t i = before; i < whole.size(); ++i) list.erase(whole[i]);
    // Queued work of the stream may still use what the host has freed.
    if (whole.size() > before && stream) last_uses.push_back(stream->record());
  }
  // That work may release blocks itself: wait for it without the lock.
  lock.unlock();
  for (const Event& event : last_uses) event.wait();
  // Nor with it here: the system may wait for all streams.
  for (const Chunk* chunk : whole) source_.give_back(chunk->data, chunk->bytes);
  lock.lock();
  forget(whole);
}

}  // namespace convoy
