#include "engine/parallel/bucket.h"

#include "kernels/base/context.h"
#include "kernels/base/error.h"
#include "kernels/kernel_list.h"

namespace convoy {
namespace {

std::int64_t aligned(std::int64_t count, DType dtype) {
  const auto unit = static_cast<std::int64_t>(64 / size_of(dtype));
  return (count + unit - 1) / unit * unit;
}

std::int64_t stored_count(const Bucket::Slot& slot, const TensorOptions& options) {
  if (slot.layout == kPlain) return slot.shape.count();
  const std::size_t bytes =
      context(options.device).kernels().layout_bytes(slot.layout, slot.shape, options.dtype);
  return static_cast<std::int64_t>(bytes / size_of(options.dtype));
}

}  // namespace

Bucket::Bucket(const TensorOptions& options, std::vector<Slot> slots, std::int64_t tail)
    : options_(options), slots_(std::move(slots)), tail_(tail) {
  for (Slot& slot : slots_) {
    slot.offset = count_;
    slot.count = stored_count(slot, options_);
    count_ += aligned(slot.count, options_.dtype);
  }
  tail_offset_ = count_;
  count_ += tail_;
}

void Bucket::set_memory(std::shared_ptr<std::byte> memory) {
  given_ = std::make_shared<Storage>(options_.device, std::move(memory), bytes());
}

// What was given, unless gradients of an earlier window are still there.
Tensor Bucket::take_memory() const {
  if (given_.use_count() != 1) return Tensor::empty({count_}, options_);
  return Tensor::over(given_, {count_}, options_.dtype);
}

// Zero between the slots, so that sums there are harmless.
void Bucket::allocate() {
  memory_ = take_memory();
  for (const Slot& slot : slots_) {
    const std::int64_t gap = aligned(slot.count, options_.dtype) - slot.count;
    if (gap > 0) part(slot.offset + slot.count, {gap}, kPlain).zero_();
  }
}

Tensor Bucket::part(std::int64_t offset, const Shape& shape, LayoutId layout) const {
  Tensor result = memory_.detach();
  result.impl()->offset = static_cast<std::size_t>(offset) * size_of(options_.dtype);
  result.impl()->shape = shape;
  result.impl()->layout = layout;
  return result;
}

Tensor Bucket::collect(const Slot& slot, const Tensor& gradient, double factor) {
  if (factor == 0) return collect_zeros(slot);
  if (!memory_.defined()) allocate();
  ++collected_;
  const Tensor source = gradient.detach().with_layout(slot.layout);
  Tensor target = part(slot.offset, slot.shape, slot.layout);
  target.before_write();
  DeviceContext& device = context(options_.device);
  Stream& stream = current_stream(options_.device);
  if (factor == 1) {
    device.copy(stream, target.buffer().data, source.buffer().data,
                static_cast<std::size_t>(slot.count) * size_of(options_.dtype));
  } else {  // stored elements as they lie: the kernel needs to know no layout
    const ConstBuffer from{source.buffer().data, options_.dtype, kPlain};
    const Buffer to{target.buffer().data, options_.dtype, kPlain};
    device.kernels().broadcast(stream, {1, 1, slot.count}, factor, from, to);
  }
  return target;
}

Tensor Bucket::collect_zeros(const Slot& slot) {
  if (!memory_.defined()) allocate();
  ++collected_;
  Tensor target = part(slot.offset, slot.shape, slot.layout);
  target.zero_();
  return target;
}

void Bucket::set_tail(const std::vector<double>& values) {
  CONVOY_DCHECK(std::ssize(values) == tail_ && memory_.defined(),
                "bucket: {} values for a tail "
                "of {}",
                values.size(), tail_);
  part(tail_offset_, {tail_}, kPlain).copy_(Tensor::from(values, {tail_}, options_));
}

std::vector<double> Bucket::tail(Stream& stream) const {
  const StreamScope scope(stream);
  return part(tail_offset_, {tail_}, kPlain).to_vector<double>();
}

Buffer Bucket::whole() const {
  memory_.before_write();
  return memory_.buffer();
}

void Bucket::release() {
  memory_ = Tensor();
  collected_ = 0;
}

}  // namespace convoy
