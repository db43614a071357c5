// Loops over the cores of a stream. How work is cut never depends on the number of threads, so
// neither do the bits of a sum whose parts are added in order.
#pragma once

#include <cstdint>

namespace convoy::cpu {

/// Elements that one thread finishes before another has woken up.
inline constexpr std::int64_t kSerialElements = 16384;
/// Elements of one part where a long range is cut.
inline constexpr std::int64_t kPartElements = 16384;

/// Calls work(i) for 0 <= i < count on the threads of this stream; each call is about `elements`
/// elements of work. `work` must not throw.
template <class Work>
void parallel_for(std::int64_t count, std::int64_t elements, const Work& work) {
#pragma omp parallel for schedule(static) if (count > 1 && count * elements > kSerialElements)
  for (std::int64_t i = 0; i < count; ++i) work(i);
}

/// Parts of a range of `count` elements.
inline std::int64_t parts_of(std::int64_t count) {
  return (count + kPartElements - 1) / kPartElements;
}

/// Calls work(part, begin, size) for each part of a range.
template <class Work>
void parallel_parts(std::int64_t count, const Work& work) {
  parallel_for(parts_of(count), kPartElements, [&](std::int64_t part) {
    const std::int64_t begin = part * kPartElements;
    const std::int64_t rest = count - begin;
    work(part, begin, rest < kPartElements ? rest : kPartElements);
  });
}

}  // namespace convoy::cpu
