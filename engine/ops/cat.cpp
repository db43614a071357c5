// Batches put together to one. Backward hands every part its rows of the gradient.
#include "engine/autograd/node.h"
#include "engine/ops/ops.h"
#include "engine/ops/support.h"
#include "kernels/base/error.h"

namespace convoy {
namespace {

void check(const std::vector<Tensor>& parts) {
  CONVOY_CHECK(!parts.empty(), "cat: no tensors given");
  const Tensor& first = parts.front();
  for (const Tensor& part : parts) {
    CONVOY_CHECK(part.defined() && part.shape().rank() >= 1,
                 "cat: a part is {}, expected a batch dimension", describe(part));
    CONVOY_CHECK(
        part.dtype() == first.dtype() && part.shape().with(0, 0) == first.shape().with(0, 0),
        "cat: a part is {}, the first is {}", describe(part), describe(first));
    check_same_device("cat", {first, part});
  }
}

// Where each part begins, and where the last one ends.
std::vector<std::int64_t> ends_of(const std::vector<Tensor>& parts) {
  std::vector<std::int64_t> ends{0};
  for (const Tensor& part : parts) ends.push_back(ends.back() + part.size(0));
  return ends;
}

}  // namespace

Tensor cat(const std::vector<Tensor>& parts) {
  check(parts);
  const std::vector<std::int64_t> ends = ends_of(parts);
  Tensor y = Tensor::empty(parts[0].shape().with(0, ends.back()), parts[0].options());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].numel() > 0) y.slice(ends[i], ends[i + 1]).copy_(parts[i]);
  }
  auto half = [ends](const Tensor& dy, const std::vector<bool>&) -> Gradients {
    Gradients gradients;
    for (std::size_t i = 0; i + 1 < ends.size(); ++i) {
      gradients.push_back(dy.slice(ends[i], ends[i + 1]));
    }
    return gradients;
  };
  return record("cat", y, parts, half);
}

}  // namespace convoy
