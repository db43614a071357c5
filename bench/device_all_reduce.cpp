#include "bench/device_all_reduce.h"

namespace convoy {
namespace {

std::size_t bytes_of(std::int64_t count) {
  return static_cast<std::size_t>(count) * sizeof(float);
}

}  // namespace

DeviceAllReduce::DeviceAllReduce(HostCommunicator& group, const Device& device)
    : device_(context(device)),
      stream_(device_.make_stream()),
      nccl_(make_nccl_communicator(group, device)) {}

void DeviceAllReduce::fill(const float* values, std::int64_t count) {
  if (memory_.bytes() < bytes_of(count)) {
    memory_ = MemoryPool::Block();
    memory_ = device_.memory().allocate(bytes_of(count), stream_.get());
  }
  device_.copy_in(*stream_, memory_.data(), values, bytes_of(count));
  stream_->synchronize();
}

void DeviceAllReduce::run(std::int64_t count) {
  const Buffer values{memory_.data(), DType::f32};
  nccl_->all_reduce(values, values, count, Reduction::sum, *stream_);
  stream_->synchronize();
}

void DeviceAllReduce::fetch(float* values, std::int64_t count) {
  device_.copy_out(*stream_, values, memory_.data(), bytes_of(count));
}

}  // namespace convoy
