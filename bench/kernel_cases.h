// The kernels of a training step of ResNet-50, one by one: operands, work, and how often the step
// has them. For bench kernels.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "kernels/kernel_list.h"

namespace convoy {

/// What the memory of an operand holds.
enum class Content { normal, positive, labels, window_places };

struct OperandOfCase {
  std::size_t bytes = 0;  ///< 0: the operand is left out
  DType dtype = DType::f32;
  LayoutId layout = kPlain;
  Content content = Content::normal;
  std::int64_t limit = 0;  ///< labels, places: values are 0..limit-1
};

/// One kernel on one shape.
struct KernelCase {
  std::string name;        ///< of the seam
  std::string shape;       ///< "n256 c64 56x56 k64 3x3 stride 1"
  std::int64_t count = 1;  ///< in a step; 0: beside it
  double flops = 0;        ///< of its products; 0 for kernels that move memory
  std::vector<OperandOfCase> operands;
  std::function<void(const KernelTable&, Stream&, std::span<const Buffer>)> call;

  /// Each operand once: what must be moved.
  double bytes() const;
};

struct KernelCaseOptions {
  std::int64_t images = 256;
  std::int64_t image_size = 224;
  std::int64_t channel_divisor =
      1;  ///< of all extents that are channels or classes, but the image's; results are whole 16s
  DType dtype = DType::f32;
};

/// The 23 shapes of convolutions in three passes (the first has no input gradient), the last layer,
/// batch norm, pooling, loss, optimizers, and what lies between them, in the layouts of `kernels`.
std::vector<KernelCase> resnet50_cases(const KernelTable& kernels,
                                       const KernelCaseOptions& options);

}  // namespace convoy
