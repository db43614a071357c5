#include "kernels/emulator/checks/shadow.h"

#include <algorithm>

namespace convoy::emulator::checks {

namespace {

// How far apart two accesses are: by thread, warp, block.
int distance(Stamp a, Stamp b) {
  if (a.block() != b.block()) return 3;
  if (a.thread() / kLanes != b.thread() / kLanes) return 2;
  return a.thread() != b.thread() ? 1 : 0;
}

// What becomes of a cell.
enum class Change : std::uint8_t { none, first_read, second_read, write };

class OneCell {
 public:
  OneCell(const Access& access, AccessKind kind, const BlockOrder& order)
      : access_(access), kind_(kind), order_(order), thread_(int(access.stamp.thread())) {}

  // The earlier access that this one races with, null where there is none.
  const Access* conflict(const Cell& cell) const {
    if (races_with(cell.write)) return &cell.write;
    if (kind_ == AccessKind::read) return nullptr;
    for (const Access& read : cell.read) {
      if (races_with(read)) return &read;
    }
    return nullptr;
  }

  Change change_of(const Cell& cell) const {
    if (kind_ != AccessKind::read) return Change::write;
    if (is_done(cell.read[0])) return Change::first_read;
    if (is_done(cell.read[1])) return Change::second_read;
    const bool is_further = distance(access_.stamp, cell.read[0].stamp) >
                            distance(cell.read[1].stamp, cell.read[0].stamp);
    return is_further ? Change::second_read : Change::none;
  }

  void apply(Change change, Cell& cell) const {
    switch (change) {
      case Change::none:
        return;
      case Change::first_read:
        cell.read[0] = access_;
        return;
      case Change::second_read:
        cell.read[1] = access_;
        return;
      case Change::write:
        cell.write = access_;
        cell.read[0] = cell.read[1] = {};
        return;
    }
  }

  bool is_atomic() const { return access_.is_atomic; }

 private:
  bool is_done(const Access& earlier) const {
    return !order_.is_of_this_grid(earlier.stamp) || order_.is_before(earlier.stamp, thread_);
  }
  bool races_with(const Access& earlier) const {
    return !is_done(earlier) && !(access_.is_atomic && earlier.is_atomic);
  }

  const Access access_;
  const AccessKind kind_;
  const BlockOrder& order_;
  const int thread_;
};

// Notes one access in some cells.
class Notes {
 public:
  explicit Notes(const OneCell& one) : one_(one) {}

  void add(Cell& cell) {
    // Neighbours that were touched together share their fate; of atomics the kind counts too.
    const Past past{cell.write.stamp, cell.read[0].stamp, cell.read[1].stamp};
    if (!has_last_ || !(past == last_)) {
      const Access* const conflict = one_.conflict(cell);
      if (conflict != nullptr && !has_conflict_) keep(conflict, cell);
      change_ = one_.change_of(cell);
      last_ = past;
      has_last_ = !one_.is_atomic();
    }
    one_.apply(change_, cell);
  }
  std::optional<Conflict> first() const {
    if (!has_conflict_) return std::nullopt;
    return first_;
  }

 private:
  struct Past {
    Stamp write, first_read, second_read;
    friend bool operator==(const Past&, const Past&) = default;
  };

  // Not an optional: copies of that would be most of the time of a check.
  void keep(const Access* conflict, const Cell& cell) {
    has_conflict_ = true;
    first_ = {*conflict, conflict == &cell.write ? AccessKind::write : AccessKind::read};
  }

  const OneCell& one_;
  Past last_;
  Change change_ = Change::none;
  bool has_last_ = false, has_conflict_ = false;
  Conflict first_;
};

}  // namespace

std::optional<Conflict> Cells::note(std::size_t offset, std::uint32_t bytes, const Access& access,
                                    AccessKind kind, const BlockOrder& order) const {
  const OneCell one(access, kind, order);
  Notes notes(one);
  const std::size_t end = offset + bytes;
  for (std::size_t i = offset; i < end;) {
    const std::size_t begin = i / kWordBytes * kWordBytes;
    const std::size_t next = std::min(begin + kWordBytes, end);
    const bool is_whole = next - i == kWordBytes;
    WordCell& word = words_[i / kWordBytes];
    if (is_whole && !word.is_split) {
      notes.add(word.cell);
    } else {
      if (!word.is_split) std::fill_n(bytes_ + begin, kWordBytes, word.cell);
      for (std::size_t at = i; at < next; ++at) notes.add(bytes_[at]);
      // What was written as a whole is one again.
      word.is_split = !is_whole || kind == AccessKind::read;
      if (!word.is_split) word.cell = bytes_[begin];
    }
    i = next;
  }
  return notes.first();
}

}  // namespace convoy::emulator::checks
