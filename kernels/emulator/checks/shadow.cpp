#include "kernels/emulator/checks/shadow.h"

#include <cstring>

namespace convoy::emulator::checks {

namespace {

// How far apart two accesses are: by thread, warp, block.
int distance(Stamp a, Stamp b) {
  if (a.block() != b.block()) return 3;
  if (a.thread() / kLanes != b.thread() / kLanes) return 2;
  return a.thread() != b.thread() ? 1 : 0;
}

class OneByte {
 public:
  OneByte(const Access& access, AccessKind kind, const BlockOrder& order)
      : access_(access), kind_(kind), order_(order), thread_(int(access.stamp.thread())) {}

  // The earlier access that this one races with.
  std::optional<Conflict> conflict(const Cell& cell) const {
    if (races_with(cell.write)) return Conflict{cell.write, AccessKind::write};
    if (kind_ == AccessKind::read) return {};
    for (const Access& read : cell.read) {
      if (races_with(read)) return Conflict{read, AccessKind::read};
    }
    return {};
  }

  void note(Cell& cell) const {
    if (kind_ == AccessKind::read) return note_read(cell);
    cell = Cell{access_, {}};
  }

 private:
  bool is_live(const Access& earlier) const { return order_.is_of_this_grid(earlier.stamp); }
  bool is_done(const Access& earlier) const {
    return !is_live(earlier) || order_.is_before(earlier.stamp, thread_);
  }
  bool races_with(const Access& earlier) const {
    return !is_done(earlier) && !(access_.is_atomic && earlier.is_atomic);
  }

  void note_read(Cell& cell) const {
    for (Access& read : cell.read) {
      if (is_done(read)) {
        read = access_;
        return;
      }
    }
    if (distance(access_.stamp, cell.read[0].stamp) >
        distance(cell.read[1].stamp, cell.read[0].stamp)) {
      cell.read[1] = access_;
    }
  }

  const Access& access_;
  AccessKind kind_;
  const BlockOrder& order_;
  int thread_;
};

}  // namespace

std::optional<Conflict> note_access(Cell* cells, std::uint32_t bytes, const Access& access,
                                    AccessKind kind, const BlockOrder& order) {
  const OneByte byte(access, kind, order);
  std::optional<Conflict> first;
  for (std::uint32_t i = 0; i < bytes;) {
    const Cell before = cells[i];
    if (!first) first = byte.conflict(before);
    byte.note(cells[i]);
    // Neighbours that were touched together share their fate.
    const Cell after = cells[i];
    for (++i; i < bytes && std::memcmp(&cells[i], &before, sizeof before) == 0; ++i) {
      cells[i] = after;
    }
  }
  return first;
}

}  // namespace convoy::emulator::checks
