#include "kernels/cuda/sum_of_squares.h"

#include "kernels/cuda/block_reduce.h"
#include "kernels/cuda/chunk_table.h"
#include "kernels/cuda/gpu_stream.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/optimizer_checks.h"
#include "kernels/cuda/pack.h"
#include "kernels/cuda/shared.h"

namespace convoy::CONVOY_GPU {
namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kChunk = 8192;  // values of a block, a multiple of any vector's

struct Entry {
  const void* x;
  std::int64_t count;
  std::int32_t first;
  DType dtype;
  bool aligned;
};
using Table = ChunkTable<Entry, 512>;

struct Memory {
  ReduceSlots<double, kThreads> slots;
};

// Squares of this thread's values of [0, count).
template <class T>
__device__ __forceinline__ double squares(const T* x, std::int64_t count, bool aligned) {
  double sum = 0;
  auto add = [&]<int N>(Width<N>, std::int64_t i) {
    const Pack<Math<T>, N> values = load_pack<N>(x + i);
    CONVOY_UNROLL
    for (int lane = 0; lane < N; ++lane) sum += double(values[lane]) * double(values[lane]);
  };
  constexpr int kN = kLanes<T>;
  const std::int64_t vectors = aligned ? count / kN : 0;
  for (std::int64_t i = threadIdx.x; i < vectors; i += kThreads) add(Width<kN>(), i * kN);
  for (std::int64_t i = vectors * kN + threadIdx.x; i < count; i += kThreads) add(Width<1>(), i);
  return sum;
}

__global__ void __launch_bounds__(kThreads) squares_kernel(Table table, double* partials) {
  auto& memory = smem<Memory>();
  const Entry entry = table.entries[entry_of_chunk(table, blockIdx.x)];
  const std::int64_t begin = (std::int64_t(blockIdx.x) - entry.first) * kChunk;
  const std::int64_t left = entry.count - begin, count = left < kChunk ? left : kChunk;
  double sum = 0;
  if (entry.dtype == DType::f32) {
    sum = squares(static_cast<const float*>(entry.x) + begin, count, entry.aligned);
  } else if (entry.dtype == DType::bf16) {
    sum = squares(static_cast<const Bf16*>(entry.x) + begin, count, entry.aligned);
  } else {
    sum = squares(static_cast<const double*>(entry.x) + begin, count, entry.aligned);
  }
  sum = block_reduce(memory.slots, sum);
  if (threadIdx.x == 0) partials[blockIdx.x] = sum;
}

// A block for each entry.
__global__ void __launch_bounds__(kThreads)
    squares_total_kernel(Table table, const double* partials, double* result) {
  auto& memory = smem<Memory>();
  const int entry = blockIdx.x;
  const int end = entry + 1 < table.size ? table.entries[entry + 1].first : table.chunks;
  double sum = 0;
  for (int i = table.entries[entry].first + int(threadIdx.x); i < end; i += kThreads) {
    sum += partials[i];
  }
  sum = block_reduce(memory.slots, sum);
  if (threadIdx.x == 0) result[entry] = sum;
}

void launch_table(Stream& stream, const Table& table, double* result, double* workspace) {
  LaunchConfig config{
      .block = {kThreads}, .shared_bytes = sizeof(Memory), .stream = handle(stream)};
  if (table.chunks > 0) {
    config.grid.x = static_cast<unsigned>(table.chunks);
    launch(squares_kernel, config, table, workspace);
  }
  config.grid.x = static_cast<unsigned>(table.size);
  launch(squares_total_kernel, config, table, workspace, result);
}

}  // namespace

std::int64_t squares_workspace(const std::vector<std::int64_t>& counts) {
  std::int64_t chunks = 0;
  for (std::int64_t count : counts) chunks += (count + kChunk - 1) / kChunk;
  return chunks;
}

void queue_sum_of_squares(Stream& stream, const std::vector<ConstBuffer>& x,
                          const std::vector<std::int64_t>& counts, double* result,
                          double* workspace) {
  auto entry_of = [&](std::size_t i) -> Entry {
    return {x[i].data, counts[i], 0, x[i].dtype, is_aligned(x[i].data, 16)};
  };
  for_each_table<Table>(x.size(), kChunk, entry_of, [&](const Table& table, std::size_t first) {
    launch_table(stream, table, result + first, workspace);
  });
}

void sum_of_squares(Stream& stream, const std::vector<ConstBuffer>& x,
                    const std::vector<std::int64_t>& counts, Buffer result) {
  check_squares(x, counts, result);
  auto* workspace =
      static_cast<double*>(stream.scratch(squares_workspace(counts) * sizeof(double)));
  queue_sum_of_squares(stream, x, counts, result.as<double>(), workspace);
}

}  // namespace convoy::CONVOY_GPU
