// The table of kernels.
#include "kernels/cuda/context.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/table_entry.h"

namespace convoy::CONVOY_GPU {
namespace {

// The name of a kernel as a constant that a template can take.
#define CONVOY_NAME(result, name, arguments) constexpr char name##_name[] = #name;
CONVOY_KERNEL_LIST(CONVOY_NAME)
#undef CONVOY_NAME

#define CONVOY_ENTRY(result, name, arguments) entry_of<&name, name##_name>(&name),
constexpr KernelTable kTable = {CONVOY_KERNEL_LIST(CONVOY_ENTRY)};
#undef CONVOY_ENTRY

}  // namespace

const KernelTable& kernel_table() {
  return kTable;
}

}  // namespace convoy::CONVOY_GPU
