// What is known of each byte that kernels share: who wrote it last, and who read it since.
#pragma once

#include <cstddef>
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
  AccessKind kind = AccessKind::write;
};

/// Most words of 4 bytes are touched as a whole: one cell stands for their bytes.
struct WordCell {
  Cell cell;
  bool is_split = false;  ///< the bytes have cells of their own
};

static_assert(sizeof(Cell) == 36 && sizeof(WordCell) == 40);  // of every byte, of every word

/// The cells of a stretch of memory; zeros are cells of what nobody has touched.
class Cells {
 public:
  static constexpr std::uint32_t kWordBytes = 4;

  Cells() = default;
  /// Of bytes[i] nothing is read before it is written.
  Cells(WordCell* words, Cell* bytes) : words_(words), bytes_(bytes) {}

  const Cell& of_byte(std::size_t offset) const {
    const WordCell& word = words_[offset / kWordBytes];
    return word.is_split ? bytes_[offset] : word.cell;
  }

  /// Notes that `access` happens now to `bytes` bytes from `offset`, and returns the first earlier
  /// access that it races with.
  std::optional<Conflict> note(std::size_t offset, std::uint32_t bytes, const Access& access,
                               AccessKind kind, const BlockOrder& order) const;

 private:
  WordCell* words_ = nullptr;
  Cell* bytes_ = nullptr;
};

}  // namespace convoy::emulator::checks
