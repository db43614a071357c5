// Devices cpu:K: this machine's cores, the best vectors they have, and the convolution library.
#include <fmt/format.h>
#include <omp.h>

#include "kernels/backends.h"
#include "kernels/base/host_context.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/library.h"
#include "kernels/cpu/peak.h"

namespace convoy::cpu {
namespace {

#define CONVOY_INITIALISER(result, name, arguments) &name,
constexpr KernelTable kTable = {CONVOY_KERNEL_LIST(CONVOY_INITIALISER)};
#undef CONVOY_INITIALISER

// OpenMP's number of threads belongs to the thread that sets it: each stream's own.
void apply_threads(int threads) {
  omp_set_num_threads(threads);
}

class CpuContext final : public HostContext {
 public:
  using HostContext::HostContext;
  std::string describe() const override {
    const Cores own = cores();
    return fmt::format("{}, {}, {} thread{} of {} core{}{}", isa().title, library_name(), threads(),
                       threads() == 1 ? "" : "s", allowed_cores(), allowed_cores() == 1 ? "" : "s",
                       own.empty() ? "" : ": " + core_list(own));
  }
  double measure_peak_flops() override {
    double result = 0;
    static_cast<HostStream&>(default_stream()).submit([&result] { result = measure_peak(); });
    default_stream().synchronize();
    return result;
  }
};

}  // namespace

std::unique_ptr<DeviceContext> open(int index) {
  open_library();
  return std::make_unique<CpuContext>(Device(DeviceType::cpu, index), kTable, std::string(),
                                      apply_threads);
}

}  // namespace convoy::cpu
