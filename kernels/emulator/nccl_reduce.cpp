#include "kernels/emulator/nccl_reduce.h"

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "kernels/base/bf16.h"
#include "kernels/base/error.h"
#include "kernels/emulator/nccl_call.h"

namespace convoy::emulator::nccl {
namespace {

template <class T>
constexpr bool kIsFloating = std::floating_point<T> || std::same_as<T, Bf16>;

/// The type that sums of T are computed in. Integers wrap around.
template <class T>
struct Wide {
  using Type = T;
};
template <>
struct Wide<Bf16> {
  using Type = float;
};
template <std::signed_integral T>
struct Wide<T> {
  using Type = std::make_unsigned_t<T>;
};

template <class T>
T larger(T a, T b) {
  if constexpr (std::floating_point<T>)
    return std::isnan(a) ? a : std::isnan(b) ? b : std::max(a, b);
  return std::max(a, b);
}
template <class T>
T smaller(T a, T b) {
  if constexpr (std::floating_point<T>)
    return std::isnan(a) ? a : std::isnan(b) ? b : std::min(a, b);
  return std::min(a, b);
}

template <class T>
T combined(ncclRedOp_t op, T a, T b) {
  using W = typename Wide<T>::Type;
  if constexpr (std::same_as<T, Bf16>) {
    return Bf16(combined(op, static_cast<float>(a), static_cast<float>(b)));
  } else {
    switch (op) {
      case ncclProd:
        return static_cast<T>(static_cast<W>(a) * static_cast<W>(b));
      case ncclMax:
        return larger(a, b);
      case ncclMin:
        return smaller(a, b);
      case ncclSum:
      case ncclAvg:
        break;
    }
    return static_cast<T>(static_cast<W>(a) + static_cast<W>(b));
  }
}

template <class Work>
void with_type(ncclDataType_t type, Work&& work) {
  switch (type) {
    case ncclInt8:
      return work(std::int8_t{});
    case ncclUint8:
      return work(std::uint8_t{});
    case ncclInt32:
      return work(std::int32_t{});
    case ncclUint32:
      return work(std::uint32_t{});
    case ncclInt64:
      return work(std::int64_t{});
    case ncclUint64:
      return work(std::uint64_t{});
    case ncclFloat32:
      return work(float{});
    case ncclFloat64:
      return work(double{});
    case ncclBfloat16:
      return work(Bf16{});
    case ncclFloat16:
      break;
  }
  CONVOY_FAIL(internal, "emulated NCCL: type {}", name(type));
}

template <class T>
using Scale = std::conditional_t<std::same_as<T, Bf16>, float, T>;

}  // namespace

void combine(ncclDataType_t type, ncclRedOp_t op, const void* partial, const void* own, void* out,
             std::size_t count) {
  with_type(type, [&]<class T>(T) {
    const T* a = static_cast<const T*>(partial);
    const T* b = static_cast<const T*>(own);
    T* result = static_cast<T*>(out);
    for (std::size_t i = 0; i < count; ++i) result[i] = combined(op, a[i], b[i]);
  });
}

void bring_in(ncclDataType_t type, ncclRedOp_t op, int ranks, const void* own, void* out,
              std::size_t count) {
  with_type(type, [&]<class T>(T) {
    if constexpr (kIsFloating<T>) {
      if (op == ncclAvg) {
        // The factor is a value of the type too.
        const auto factor = static_cast<Scale<T>>(T(Scale<T>(1) / static_cast<Scale<T>>(ranks)));
        const T* values = static_cast<const T*>(own);
        T* result = static_cast<T*>(out);
        for (std::size_t i = 0; i < count; ++i) {
          result[i] = T(static_cast<Scale<T>>(values[i]) * factor);
        }
        return;
      }
    }
    if (out != own) std::memcpy(out, own, count * sizeof(T));
  });
}

void finish(ncclDataType_t type, ncclRedOp_t op, int ranks, void* values, std::size_t count) {
  if (op != ncclAvg) return;
  with_type(type, [&]<class T>(T) {
    if constexpr (std::integral<T>) {
      T* result = static_cast<T*>(values);
      for (std::size_t i = 0; i < count; ++i) result[i] = static_cast<T>(result[i] / T(ranks));
    }
  });
}

}  // namespace convoy::emulator::nccl
