// Many buffers in one launch: a table of them travels with the launch by value, each block takes
// one chunk of one buffer. Nothing is uploaded, and no host memory needs to outlive the call.
#pragma once

#include <cstdint>
#include <iterator>

#include "kernels/cuda/platform.h"

namespace convoy::CONVOY_GPU {

/// At most `Max` entries; each has `count` values, and the number of its first chunk in `first`.
/// 32 KB is what a launch's arguments may take.
template <class Entry, int Max>
struct ChunkTable {
  static_assert(sizeof(Entry) * Max <= 24 << 10);
  std::int32_t size = 0;
  std::int32_t chunks = 0;
  Entry entries[Max];
};

/// Fills tables with entry_of(0), ..., entry_of(count - 1), and calls `launch(table, index of its
/// first entry)` for each one that is full, and for the last.
template <class Table, class EntryOf, class Launch>
void for_each_table(std::size_t count, std::int64_t chunk, const EntryOf& entry_of,
                    const Launch& launch) {
  Table table{};  // entries that are not used point nowhere
  for (std::size_t i = 0; i < count; ++i) {
    auto& entry = table.entries[table.size++];
    entry = entry_of(i);
    entry.first = table.chunks;
    table.chunks += static_cast<std::int32_t>((entry.count + chunk - 1) / chunk);
    if (table.size == std::ssize(table.entries) || i + 1 == count) {
      launch(table, i + 1 - table.size);
      table = {};
    }
  }
}

/// Which entry a chunk belongs to: the last one that does not start behind it.
template <class Table>
__device__ __forceinline__ int entry_of_chunk(const Table& table, std::int32_t chunk) {
  int low = 0, high = table.size;
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (table.entries[middle].first <= chunk ? low : high) = middle;
  }
  return low;
}

}  // namespace convoy::CONVOY_GPU
