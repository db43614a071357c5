#include "engine/parallel/tensor_collectives.h"

#include "comm/process_group.h"
#include "kernels/base/context.h"

namespace convoy {
namespace {

// Calls `collective` with the values in row-major order: layouts may differ between workers.
template <class Collective>
void with_plain(Tensor& tensor, Collective&& collective) {
  Tensor plain = tensor.layout() == kPlain ? tensor.detach() : tensor.with_layout(kPlain);
  plain.before_write();
  collective(plain.buffer(), plain.numel(), current_stream(plain.device()));
  if (tensor.layout() != kPlain) tensor.copy_(plain);
}

}  // namespace

void all_reduce(Tensor tensor, Reduction reduction) {
  with_plain(tensor, [&](Buffer values, std::int64_t count, Stream& stream) {
    communicator().all_reduce(values, values, count, reduction, stream);
  });
}

void broadcast(Tensor tensor, int root) {
  with_plain(tensor, [&](Buffer values, std::int64_t count, Stream& stream) {
    communicator().broadcast(values, count, root, stream);
  });
}

}  // namespace convoy
