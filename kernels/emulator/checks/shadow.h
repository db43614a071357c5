// What is known of each byte that kernels share: who wrote it last, and who read it since.
#pragma once

#include <cstdint>
#include <optional>

#include "kernels/emulator/checks/order.h"

namespace convoy::emulator::checks {

enum class AccessKind : std::uint8_t { read, write, atomic };

/// Who touched a byte, and where in the code.
struct Access {
  Stamp stamp;
  std::uint32_t code : 31 = 0;  // see code_place.h
  std::uint32_t is_atomic : 1 = 0;
};

/// The last writer of a byte, and two of those who read it since: of different blocks if there are
/// such, else of different warps, else different threads. A later writer is unordered with one of
/// these two if it is unordered with any.
struct Cell {
  Access write;
  Access read[2];
};

/// An earlier access that is not ordered with the present one.
struct Conflict {
  Access other;
  AccessKind kind;
};

static_assert(sizeof(Cell) == 36);  // there is one for each byte

/// Notes in the cells of `bytes` neighbouring bytes that `access` happens now, and returns the
/// first earlier access that it races with.
std::optional<Conflict> note_access(Cell* cells, std::uint32_t bytes, const Access& access,
                                    AccessKind kind, const BlockOrder& order);

}  // namespace convoy::emulator::checks
