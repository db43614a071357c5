// The table of the vendor's kernels, and ours for all else.
#include "kernels/cuda/context.h"
#include "kernels/cuda/table_entry.h"
#include "kernels/cuda/vendor/kernels.h"
#include "kernels/cuda/vendor/vendor.h"

namespace convoy::cuda {
namespace {

// CONVOY_VENDOR(name) for each kernel that a library computes.
#define CONVOY_VENDOR_LIST(CONVOY_VENDOR)   \
  CONVOY_VENDOR(conv2d_forward)             \
  CONVOY_VENDOR(conv2d_input_gradient)      \
  CONVOY_VENDOR(conv2d_weight_gradient)     \
  CONVOY_VENDOR(linear_forward)             \
  CONVOY_VENDOR(linear_input_gradient)      \
  CONVOY_VENDOR(linear_weight_gradient)     \
  CONVOY_VENDOR(batch_norm_mask_bytes)      \
  CONVOY_VENDOR(batch_norm_statistics)      \
  CONVOY_VENDOR(batch_norm_apply)           \
  CONVOY_VENDOR(batch_norm_backward_reduce) \
  CONVOY_VENDOR(batch_norm_backward_apply)  \
  CONVOY_VENDOR(max_pool2d_forward)         \
  CONVOY_VENDOR(avg_pool2d_forward)         \
  CONVOY_VENDOR(avg_pool2d_backward)

#define CONVOY_NAME(name) constexpr char name##_name[] = #name;
CONVOY_VENDOR_LIST(CONVOY_NAME)
#undef CONVOY_NAME

KernelTable make_table() {
  KernelTable table = kernel_table();
#define CONVOY_ENTRY(name) table.name = entry_of<&vendor::name, name##_name>(&vendor::name);
  CONVOY_VENDOR_LIST(CONVOY_ENTRY)
#undef CONVOY_ENTRY
  return table;
}

}  // namespace

const KernelTable& vendor_kernel_table(const Device& device, bool deterministic) {
  static const KernelTable table = make_table();
  vendor::VendorDevice& state = vendor::vendor_device(device);
  const std::lock_guard lock(state.mutex);
  state.deterministic = deterministic;
  return table;
}

}  // namespace convoy::cuda
