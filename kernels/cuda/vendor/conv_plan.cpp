#include "kernels/cuda/vendor/conv_plan.h"

#include <vector>

#include "kernels/base/error.h"
#include "kernels/cuda/vendor/vendor.h"

namespace convoy::cuda::vendor {
namespace {

constexpr const char* kWhat = "the choice of a convolution";
constexpr std::size_t kMostWorkspace = std::size_t{1} << 30;
constexpr int kAsked = 12;

// The first of cuDNN's list, which is sorted by its forecast of time, that may be used.
template <class Performance>
void take_first(const std::vector<Performance>& found, bool deterministic, ConvPlan& plan) {
  for (const Performance& one : found) {
    if (one.status != CUDNN_STATUS_SUCCESS || one.memory > kMostWorkspace) continue;
    if (deterministic && one.determinism != CUDNN_DETERMINISTIC) continue;
    plan.algorithm = static_cast<int>(one.algo);
    plan.workspace = one.memory;
    return;
  }
  CONVOY_FAIL(usage, "--kernels vendor: cuDNN has no {}algorithm for this convolution",
              deterministic ? "deterministic " : "");
}

template <class Performance, class Ask>
void choose(bool deterministic, ConvPlan& plan, const Ask& ask) {
  std::vector<Performance> found(kAsked);
  int count = 0;
  check(ask(kAsked, &count, found.data()), kWhat);
  found.resize(static_cast<std::size_t>(count));
  take_first(found, deterministic, plan);
}

void choose_algorithm(VendorDevice& device, const ConvKey& key, ConvPlan& p) {
  cudnnHandle_t handle = device.cudnn;
  switch (key.pass) {
    case Pass::forward:
      return choose<cudnnConvolutionFwdAlgoPerf_t>(
          key.deterministic, p, [&](int asked, int* count, auto* found) {
            return calls().cudnnGetConvolutionForwardAlgorithm_v7(
                handle, p.x.get(), p.w.get(), p.convolution.get(), p.y.get(), asked, count, found);
          });
    case Pass::input_gradient:
      return choose<cudnnConvolutionBwdDataAlgoPerf_t>(
          key.deterministic, p, [&](int asked, int* count, auto* found) {
            return calls().cudnnGetConvolutionBackwardDataAlgorithm_v7(
                handle, p.w.get(), p.y.get(), p.convolution.get(), p.x.get(), asked, count, found);
          });
    case Pass::weight_gradient:
      return choose<cudnnConvolutionBwdFilterAlgoPerf_t>(
          key.deterministic, p, [&](int asked, int* count, auto* found) {
            return calls().cudnnGetConvolutionBackwardFilterAlgorithm_v7(
                handle, p.x.get(), p.y.get(), p.convolution.get(), p.w.get(), asked, count, found);
          });
  }
}

}  // namespace

const ConvPlan& conv_plan(VendorDevice& device, const ConvKey& key) {
  std::unique_ptr<ConvPlan>& slot = device.plans[key];
  if (slot) return *slot;
  const Conv2dShape& s = key.shape;
  auto plan = std::make_unique<ConvPlan>(ConvPlan{tensor_descriptor(s.x(), key.x, key.dtype),
                                                  tensor_descriptor(s.y(), key.y, key.dtype),
                                                  filter_descriptor(s.weight(), key.w, key.dtype),
                                                  convolution_descriptor(s, key.dtype, key.tf32)});
  choose_algorithm(device, key, *plan);
  slot = std::move(plan);
  return *slot;
}

}  // namespace convoy::cuda::vendor
