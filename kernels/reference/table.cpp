#include <memory>
#include <string>

#include "kernels/backends.h"
#include "kernels/base/host_context.h"
#include "kernels/reference/reference.h"

namespace convoy::reference {
namespace {

#define CONVOY_ENTRY(result, name, arguments) &name,
constexpr KernelTable kTable = {CONVOY_KERNEL_LIST(CONVOY_ENTRY)};
#undef CONVOY_ENTRY

}  // namespace

std::unique_ptr<DeviceContext> open(int index) {
  return std::make_unique<HostContext>(Device(DeviceType::ref, index), kTable,
                                       "plain loops in double precision", [](int) {});
}

}  // namespace convoy::reference
