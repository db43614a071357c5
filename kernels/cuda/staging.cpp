#include "kernels/cuda/staging.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "kernels/cuda/check.h"

namespace convoy::CONVOY_GPU {
namespace {

constexpr std::size_t kLeastBuffer = std::size_t{64} << 10;
constexpr std::size_t kMostInAll = std::size_t{1} << 30;

}  // namespace

struct Staging::Buffer {
  ~Buffer() {
    if (copied) {
      cudaEventSynchronize(copied);
      cudaEventDestroy(copied);
    }
    cudaFreeHost(data);
  }
  void* data = nullptr;
  std::size_t bytes = 0;
  cudaEvent_t copied = nullptr;  // after the last copy from it
  bool filling = false;          // between take() and the record of `copied`
};

Staging::Staging(int ordinal) : ordinal_(ordinal) {}

Staging::~Staging() {
  cudaSetDevice(ordinal_);
  buffers_.clear();
}

void Staging::copy_in(cudaStream_t stream, void* target, const void* source, std::size_t bytes) {
  if (bytes == 0) return;
  Buffer* const buffer = take(bytes);
  std::memcpy(buffer->data, source, bytes);
  cudaError_t result = cudaMemcpyAsync(target, buffer->data, bytes, cudaMemcpyHostToDevice, stream);
  if (result == cudaSuccess) result = cudaEventRecord(buffer->copied, stream);
  {
    std::lock_guard lock(mutex_);
    buffer->filling = false;
  }
  check(result);
}

Staging::Buffer* Staging::take(std::size_t bytes) {
  std::lock_guard lock(mutex_);
  Buffer* buffer = find_free(bytes);
  if (!buffer && total_ + bytes > kMostInAll) buffer = wait_for_one(bytes);
  if (!buffer) buffer = make(bytes);
  buffer->filling = true;
  return buffer;
}

Staging::Buffer* Staging::find_free(std::size_t bytes) {
  Buffer* best = nullptr;
  for (const auto& each : buffers_) {
    const bool fits =
        !each->filling && each->bytes >= bytes && (!best || each->bytes < best->bytes);
    if (fits && cudaEventQuery(each->copied) == cudaSuccess) best = each.get();
  }
  return best;
}

Staging::Buffer* Staging::wait_for_one(std::size_t bytes) {
  auto found = std::find_if(buffers_.begin(), buffers_.end(), [bytes](const auto& each) {
    return !each->filling && each->bytes >= bytes;
  });
  if (found == buffers_.end()) return nullptr;
  check(cudaEventSynchronize((*found)->copied));
  return found->get();
}

Staging::Buffer* Staging::make(std::size_t bytes) {
  auto buffer = std::make_unique<Buffer>();
  buffer->bytes = std::max(kLeastBuffer, std::bit_ceil(bytes));
  check(cudaMallocHost(&buffer->data, buffer->bytes));
  check(cudaEventCreateWithFlags(&buffer->copied, cudaEventDisableTiming));
  total_ += buffer->bytes;
  buffers_.push_back(std::move(buffer));
  return buffers_.back().get();
}

}  // namespace convoy::CONVOY_GPU
