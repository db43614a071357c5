// Softmax cross-entropy of the seam: checks, scratch, and the number of threads.
#include "kernels/cuda/cross_entropy.h"

#include "kernels/base/error.h"
#include "kernels/cuda/activations.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/operands.h"

namespace convoy::CONVOY_GPU {

int cross_entropy_threads(std::int64_t classes) {
  return classes <= 512 ? 64 : 256;
}

void softmax_cross_entropy(Stream& stream, const CrossEntropyShape& shape, ConstBuffer logits,
                           ConstBuffer labels, Buffer loss, Buffer dlogits) {
  constexpr const char* kName = "softmax_cross_entropy";
  activation_dtype(kName, {logits, dlogits});
  check_plain(kName, {logits, dlogits, loss});
  check_is(kName, "labels", labels, DType::i64);
  with_full(kName, loss.dtype, [](auto) {});
  auto* losses =
      static_cast<double*>(stream.scratch(static_cast<std::size_t>(shape.rows) * sizeof(double)));
  if (shape.rows > 0) {
    launch_cross_entropy(handle(stream), shape,
                         {logits, labels.as<std::int64_t>(), losses, dlogits}, failure_of(stream));
  }
  launch_total_loss(handle(stream), shape.rows, shape.scale, losses, loss);
}

}  // namespace convoy::CONVOY_GPU
