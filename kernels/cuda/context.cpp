#include "kernels/cuda/context.h"

#include <fmt/format.h>

#include <string_view>

#include "kernels/backends.h"
#include "kernels/base/error.h"
#include "kernels/cuda/graph.h"
#include "kernels/cuda/runtime_extras.h"
#include "kernels/cuda/stream.h"

#define CONVOY_TEXT_OF(macro) #macro
#define CONVOY_TEXT(macro) CONVOY_TEXT_OF(macro)

namespace convoy::CONVOY_GPU {
namespace {

constexpr bool kEmulated = std::string_view(CONVOY_TEXT(CONVOY_GPU)) == "emulator";
constexpr DeviceType kType = kEmulated ? DeviceType::emu : DeviceType::cuda;

void* take(int ordinal, std::size_t bytes) {
  check(cudaSetDevice(ordinal));
  void* data = nullptr;
  const cudaError_t result = cudaMalloc(&data, bytes);
  if (result == cudaErrorMemoryAllocation) {
    cudaGetLastError();  // no fault of the device: the pool tries again
    return nullptr;
  }
  check(result);
  return data;
}

// False in host functions of streams, which may not free memory.
bool give_back_block(int ordinal, void* data, Stream* stream) {
  if (cudaSetDevice(ordinal) == cudaErrorNotPermitted) return false;
  if (stream) {
    cudaFreeAsync(data, gpu(*stream).handle());
  } else {
    cudaFree(data);
  }
  return true;
}

MemoryPool::Source memory_of(int ordinal) {
  MemoryPool::Source source = {[ordinal](std::size_t bytes) { return take(ordinal, bytes); },
                               [ordinal](void* data, std::size_t) {
                                 cudaSetDevice(ordinal);
                                 cudaFree(data);
                               }};
  if (wants_whole_blocks()) {
    source.give_back_block = [ordinal](void* data, Stream* stream) {
      return give_back_block(ordinal, data, stream);
    };
  }
  return source;
}

}  // namespace

GpuContext::GpuContext(int ordinal)
    : gpu_(Device(kType, ordinal), memory_of(ordinal)),
      staging_(ordinal),
      default_stream_(std::make_unique<GpuStream>(gpu_)) {}

GpuContext::~GpuContext() = default;

std::unique_ptr<Stream> GpuContext::make_stream() {
  return std::make_unique<GpuStream>(gpu_);
}

void GpuContext::set_threads(int threads) {
  CONVOY_CHECK(threads >= 1, "{}: {} threads asked for, at least 1 is needed", to_string(device()),
               threads);
  threads_ = threads;
}

std::string GpuContext::describe() const {
  cudaDeviceProp properties = {};
  check(cudaGetDeviceProperties(&properties, device().index));
  if (kEmulated) {
    return fmt::format("{}, {} SMs, sm_{}{}", properties.name, properties.multiProcessorCount,
                       properties.major, properties.minor);
  }
  int driver = 0;
  check(cudaDriverGetVersion(&driver));
  return fmt::format("{}, sm_{}{}, {:.1f} GiB, driver {}.{}", properties.name, properties.major,
                     properties.minor, static_cast<double>(properties.totalGlobalMem) / (1 << 30),
                     driver / 1000, driver % 1000 / 10);
}

void GpuContext::copy_in(Stream& stream, void* target, const void* source, std::size_t bytes) {
  GpuStream& on = gpu(stream);
  gpu_.make_current();
  CONVOY_DCHECK(!on.capturing(), "{}: a graph cannot hold a copy of memory that goes away",
                to_string(device()));
  on.begin_span("copy_in");
  staging_.copy_in(on.handle(), target, source, bytes);
  on.end_span();
}

void GpuContext::copy_out(Stream& stream, void* target, const void* source, std::size_t bytes) {
  GpuStream& on = gpu(stream);
  gpu_.make_current();
  if (bytes > 0) {
    on.begin_span("copy_out");
    check(cudaMemcpyAsync(target, source, bytes, cudaMemcpyDeviceToHost, on.handle()));
    on.end_span();
  }
  stream.synchronize();
}

void GpuContext::copy(Stream& stream, void* target, const void* source, std::size_t bytes) {
  if (bytes == 0 || target == source) return;
  GpuStream& on = gpu(stream);
  gpu_.make_current();
  on.begin_span("copy");
  check(cudaMemcpyAsync(target, source, bytes, cudaMemcpyDefault, on.handle()));
  on.end_span();
}

void GpuContext::reach(const Device& other) {
  CONVOY_CHECK(other.type == kType, "{}: no way to the memory of {}, expected one of its kind",
               to_string(device()), to_string(other));
  gpu_.make_current();
  reach_peer(device().index, other.index);
}

void GpuContext::begin_capture(Stream& stream) {
  CONVOY_CHECK(&stream != default_stream_.get(),
               "{}: the default stream cannot be captured, only one for that alone",
               to_string(device()));
  CONVOY_GPU::begin_capture(gpu(stream));
}

std::unique_ptr<Graph> GpuContext::end_capture(Stream& stream) {
  return std::make_unique<GpuGraph>(gpu(stream));
}

void choose_kernels(const Device& device, KernelChoice choice) {
  auto& on = dynamic_cast<GpuContext&>(context(device));
  const bool own = choice == KernelChoice::own;
  const bool deterministic = choice == KernelChoice::vendor_deterministic;
  on.set_kernels(own ? kernel_table() : vendor_kernel_table(device, deterministic));
}

int count() {
  int found = 0;
  return cudaGetDeviceCount(&found) == cudaSuccess ? found : 0;
}

std::unique_ptr<DeviceContext> open(int index) {
  const std::string name = to_string(Device(kType, index));
  int found = 0;
  const cudaError_t result = cudaGetDeviceCount(&found);
  CONVOY_CHECK(result == cudaSuccess, "device: {} is not here: {}", name,
               CONVOY_GPU::describe(result));
  CONVOY_CHECK(index < found, "device: {} is not here: there {} {}", name,
               found == 1 ? "is" : "are", found);
  return std::make_unique<GpuContext>(index);
}

}  // namespace convoy::CONVOY_GPU
