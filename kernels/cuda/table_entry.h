// Entries of a table of kernels: each is a kernel between two calls that tell the stream's
// recorder, if it has one, when it began and ended.
#pragma once

#include <type_traits>

#include "kernels/cuda/stream.h"

namespace convoy::CONVOY_GPU {

// What only answers a question is no work of a stream.
template <auto Kernel, const char* Name, class Result, class First, class... Rest>
Result table_call(First first, Rest... rest) {
  if constexpr (std::is_same_v<First, Stream&>) {
    GpuStream& on = gpu(first);
    on.begin_span(Name);
    Kernel(first, static_cast<Rest>(rest)...);
    on.end_span();
  } else {
    return Kernel(first, rest...);
  }
}

/// The entry of `Kernel`, called Name (a constant with a name of its own).
template <auto Kernel, const char* Name, class Result, class First, class... Rest>
constexpr auto entry_of(Result (*)(First, Rest...)) {
  return &table_call<Kernel, Name, Result, First, Rest...>;
}

}  // namespace convoy::CONVOY_GPU
