// The table of kernels. Each entry is the kernel between two calls that tell the stream's recorder,
// if it has one, when it began and ended.
#include <type_traits>

#include "kernels/cuda/context.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/stream.h"

namespace convoy::CONVOY_GPU {
namespace {

// The name of a kernel as a constant that a template can take.
#define CONVOY_NAME(result, name, arguments) constexpr char name##_name[] = #name;
CONVOY_KERNEL_LIST(CONVOY_NAME)
#undef CONVOY_NAME

// What only answers a question is no work of a stream.
template <auto Kernel, const char* Name, class Result, class First, class... Rest>
Result call(First first, Rest... rest) {
  if constexpr (std::is_same_v<First, Stream&>) {
    GpuStream& on = gpu(first);
    on.begin_span(Name);
    Kernel(first, static_cast<Rest>(rest)...);
    on.end_span();
  } else {
    return Kernel(first, rest...);
  }
}

template <auto Kernel, const char* Name, class Result, class First, class... Rest>
constexpr auto entry_of(Result (*)(First, Rest...)) {
  return &call<Kernel, Name, Result, First, Rest...>;
}

#define CONVOY_ENTRY(result, name, arguments) entry_of<&name, name##_name>(&name),
constexpr KernelTable kTable = {CONVOY_KERNEL_LIST(CONVOY_ENTRY)};
#undef CONVOY_ENTRY

}  // namespace

const KernelTable& kernel_table() {
  return kTable;
}

}  // namespace convoy::CONVOY_GPU
