#include "comm/reduce.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>

namespace convoy {
namespace {

constexpr std::int64_t kBlock = 2048;  // elements: the sums so far stay in the first-level cache

struct BFloat16 {
  std::uint16_t bits;
};

/// The type that sums of T are made in, and how values come and go. Signed integers are added as
/// unsigned ones, which wrap.
template <class T>
struct Sum {
  using Type = T;
};
template <>
struct Sum<BFloat16> {
  using Type = float;
};

template <class T>
typename Sum<T>::Type load(T value) {
  return value;
}
float load(BFloat16 value) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16);
}

template <class T>
T store(typename Sum<T>::Type value) {
  return value;
}
/// To nearest, ties to even.
template <>
BFloat16 store<BFloat16>(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (std::isnan(value)) return {static_cast<std::uint16_t>(bits >> 16 | 0x40)};
  return {static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
}

struct Add {
  template <class S>
  S operator()(S a, S b) const {
    if constexpr (std::is_integral_v<S>) {
      using Wrapping = std::make_unsigned_t<S>;
      return static_cast<S>(static_cast<Wrapping>(a) + static_cast<Wrapping>(b));
    } else {
      return a + b;
    }
  }
};

struct Max {
  template <class S>
  S operator()(S a, S b) const {
    return a < b || b != b ? b : a;
  }
};

struct AsItIs {
  template <class S>
  S operator()(S value) const {
    return value;
  }
};

struct Divide {
  int divisor;
  template <class S>
  S operator()(S value) const {
    return value / static_cast<S>(divisor);
  }
};

struct Ends {
  std::span<const void* const> sources;
  void* out;
  std::span<void* const> copies;
};

/// One block: the sums of all but the last source go to `sums`, those with the last one to `out`.
template <class T, class Join, class Finish>
void join_block(std::span<const void* const> sources, std::int64_t begin, std::int64_t count,
                T* out, Join join, Finish finish) {
  const auto source = [&](std::size_t k) { return static_cast<const T*>(sources[k]) + begin; };
  const T* first = source(0);
  const T* last = source(sources.size() - 1);
  if (sources.size() == 1) {
    for (std::int64_t i = 0; i < count; ++i) out[i] = store<T>(finish(load(first[i])));
    return;
  }
  if (sources.size() == 2) {
    for (std::int64_t i = 0; i < count; ++i) {
      out[i] = store<T>(finish(join(load(first[i]), load(last[i]))));
    }
    return;
  }
  typename Sum<T>::Type sums[kBlock];
  const T* second = source(1);
  for (std::int64_t i = 0; i < count; ++i) sums[i] = join(load(first[i]), load(second[i]));
  for (std::size_t k = 2; k + 1 < sources.size(); ++k) {
    const T* next = source(k);
    for (std::int64_t i = 0; i < count; ++i) sums[i] = join(sums[i], load(next[i]));
  }
  for (std::int64_t i = 0; i < count; ++i) {
    out[i] = store<T>(finish(join(sums[i], load(last[i]))));
  }
}

template <class T, class Join, class Finish>
void join_all(const Ends& ends, std::int64_t count, Join join, Finish finish) {
  for (std::int64_t begin = 0; begin < count; begin += kBlock) {
    const std::int64_t length = std::min(kBlock, count - begin);
    T* out = static_cast<T*>(ends.out) + begin;
    join_block(ends.sources, begin, length, out, join, finish);
    for (void* copy : ends.copies) {
      std::memcpy(static_cast<T*>(copy) + begin, out, static_cast<std::size_t>(length) * sizeof(T));
    }
  }
}

template <class T>
void reduce_as(const Ends& ends, std::int64_t count, Reduction reduction, int divisor) {
  switch (reduction) {
    case Reduction::sum:
      return join_all<T>(ends, count, Add(), AsItIs());
    case Reduction::mean:
      return join_all<T>(ends, count, Add(), Divide{divisor});
    case Reduction::max:
      return join_all<T>(ends, count, Max(), AsItIs());
  }
}

}  // namespace

void reduce(std::span<const void* const> sources, void* out, std::int64_t count, DType dtype,
            Reduction reduction, int divisor, std::span<void* const> copies) {
  const Ends ends{sources, out, copies};
  switch (dtype) {
    case DType::f32:
      return reduce_as<float>(ends, count, reduction, divisor);
    case DType::f64:
      return reduce_as<double>(ends, count, reduction, divisor);
    case DType::bf16:
      return reduce_as<BFloat16>(ends, count, reduction, divisor);
    case DType::i64:
      return reduce_as<std::int64_t>(ends, count, reduction, divisor);
    case DType::i32:
      return reduce_as<std::int32_t>(ends, count, reduction, divisor);
    case DType::u8:
      return reduce_as<std::uint8_t>(ends, count, reduction, divisor);
  }
}

}  // namespace convoy
