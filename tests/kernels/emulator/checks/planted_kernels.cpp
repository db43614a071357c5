#include "tests/kernels/emulator/checks/planted_kernels.h"

#include <cstdint>
#include <memory>

#include "kernels/cuda/launch.h"
#include "kernels/cuda/shared.h"
#include "kernels/cuda/vector.h"
#include "kernels/emulator/devices.h"

namespace convoy::emulator::testing {

namespace {

constexpr int kThreads = 64;

struct Floats {
  float v[kThreads];
};

// Device memory, freed at the end; of zeros, or as the device hands it out.
template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(int count, bool is_set = true, int device = 0) : device_(device) {
    const std::size_t bytes = count * sizeof(T);
    data_ = static_cast<T*>(emulated_device(device).memory().allocate(bytes));
    if (is_set) {
      std::fill_n(data_, count, T(0));
      memory_observer()->written(data_, bytes);
    }
  }
  ~DeviceArray() { emulated_device(device_).memory().free(data_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  T* get() const { return data_; }

 private:
  int device_;
  T* data_;
};

// At once, on this thread.
template <class... Parameters, class... Arguments>
void run(void (*kernel)(Parameters...), unsigned blocks, unsigned threads, Arguments... arguments) {
  const LaunchConfig config{.grid = blocks, .block = threads, .shared_bytes = 32 << 10};
  run_grid(grid_work(kernel, config, arguments...));
}

template <bool kBug>
__global__ void race_in_block(float* out) {
  auto& shared = smem<Floats>();
  shared.v[kBug ? threadIdx.x / 2 : threadIdx.x] = 1;  // race_in_block
  __syncthreads();
  if (threadIdx.x < kThreads / 2) out[threadIdx.x] = shared.v[threadIdx.x];
}

template <bool kBug>
__global__ void missing_barrier(float* out) {
  auto& shared = smem<Floats>();
  shared.v[threadIdx.x] = 0;
  __syncthreads();
  shared.v[threadIdx.x] = float(threadIdx.x);  // missing_barrier write
  if (!kBug) __syncthreads();
  float* mine = out + blockIdx.x * kThreads;
  mine[threadIdx.x] = shared.v[kThreads - 1 - threadIdx.x];  // missing_barrier read
}

// The second stage is filled while slow threads still read it.
template <bool kBug>
__global__ void missing_second_barrier(float* out) {
  auto& shared = smem<Floats>();
  float sum = 0;
  for (int step = 0; step < 3; ++step) {
    shared.v[threadIdx.x] = float(step);  // second_barrier write
    __syncthreads();
    sum += shared.v[kThreads - 1 - threadIdx.x];  // second_barrier read
    if (!kBug) __syncthreads();
  }
  out[threadIdx.x] = sum;
}

template <bool kBug>
__global__ void missing_warp_barrier(float* out) {
  auto& shared = smem<Floats>();
  const unsigned neighbour = threadIdx.x ^ 1;
  shared.v[threadIdx.x] = 0;
  __syncthreads();
  shared.v[threadIdx.x] = float(threadIdx.x);  // warp_barrier write
  if (!kBug) __syncwarp();
  out[threadIdx.x] = shared.v[neighbour];  // warp_barrier read
}

// A barrier of a warp orders its lanes alone.
template <bool kBug>
__global__ void warp_barrier_for_block(float* out) {
  auto& shared = smem<Floats>();
  shared.v[threadIdx.x] = 0;
  __syncthreads();
  shared.v[threadIdx.x] = 1;  // other_warp write
  if (kBug) {
    __syncwarp();
  } else {
    __syncthreads();
  }
  out[threadIdx.x] = shared.v[(threadIdx.x + 32) % kThreads];  // other_warp read
}

template <bool kBug>
__global__ void race_between_blocks(float* out) {
  const unsigned block = kBug ? 0 : blockIdx.x;
  out[block * kThreads + threadIdx.x] = float(blockIdx.x);  // race_between_blocks
}

template <bool kBug>
__global__ void race_of_reader_between_blocks(float* data) {
  const unsigned other = kBug ? (blockIdx.x + 1) % gridDim.x : blockIdx.x;
  const float value = data[other * kThreads + threadIdx.x];  // between_blocks read
  data[blockIdx.x * kThreads + threadIdx.x] = value + 1;     // between_blocks write
}

// The last block adds what the others stored; a plain counter would not tell it which is last.
template <bool kBug>
__global__ void last_block_sums(float* parts, int* counter, float* sum) {
  if (threadIdx.x != 0) return;
  parts[blockIdx.x] = 1;  // last_block write
  __threadfence();
  const bool last =
      kBug ? blockIdx.x + 1 == gridDim.x : atomicAdd(counter, 1) + 1 == int(gridDim.x);
  if (!last) return;
  for (unsigned i = 0; i < gridDim.x; ++i) *sum += parts[i];  // last_block read
}

template <bool kBug>
__global__ void uninitialised_shared(float* out) {
  auto& shared = smem<Floats>();
  if (!kBug || threadIdx.x != 5) shared.v[threadIdx.x] = 1;
  __syncthreads();
  out[threadIdx.x] = shared.v[threadIdx.x];  // uninitialised_shared
}

template <bool kBug>
__global__ void uninitialised_global(float* in, float* out) {
  if (!kBug) in[threadIdx.x] = 1;
  out[threadIdx.x] = in[threadIdx.x];  // uninitialised_global
}

template <bool kBug>
__global__ void above_global(float* out) {
  out[threadIdx.x + (kBug ? 1 : 0)] = 1;  // above_global
}

template <bool kBug>
__global__ void below_global(const float* in, float* out) {
  out[threadIdx.x] = in[int(threadIdx.x) - (kBug ? 1 : 0)];  // below_global
}

template <bool kBug>
__global__ void above_shared(float* out, int last) {
  auto* shared = reinterpret_cast<float*>(&smem<Floats>());
  shared[threadIdx.x == 0 ? last + (kBug ? 1 : 0) : int(threadIdx.x)] = 1;  // above_shared
  out[threadIdx.x] = 0;
}

template <bool kBug>
__global__ void below_shared(float* out, int first) {
  auto* shared = reinterpret_cast<float*>(&smem<Floats>());
  shared[threadIdx.x == 0 ? first - (kBug ? 1 : 0) : int(threadIdx.x)] = 1;  // below_shared
  out[threadIdx.x] = 0;
}

template <bool kBug>
__global__ void misaligned_vector(const float* in, float* out) {
  store_vector(out + 4 * threadIdx.x,
               load_vector<4>(in + 4 * threadIdx.x + (kBug ? 2 : 0)));  // misaligned
}

__global__ void add_one(float* data) {
  data[threadIdx.x] += 1;  // add_one
}

template <bool kBug>
__global__ void host_memory(float* device, float* host) {
  (kBug ? host : device)[threadIdx.x] = 1;  // host_memory
}

template <bool kBug>
__global__ void divergent_barrier(float* out) {
  if (kBug && threadIdx.x >= 32) {
    __syncthreads();  // divergent_barrier
  } else {
    __syncthreads();
  }
  out[threadIdx.x] = 1;
}

template <bool kBug>
__global__ void skipped_barrier(float* out) {
  if (!kBug || threadIdx.x < 40) __syncthreads();  // skipped_barrier
  out[threadIdx.x] = 1;
}

template <bool kBug>
__global__ void mismatched_mask(int* out) {
  const unsigned mask = kBug && threadIdx.x % 32 == 7 ? 0x7fffffffu : 0xffffffffu;
  out[threadIdx.x] = __shfl_xor_sync(mask, int(threadIdx.x), 1);  // mismatched_mask
}

struct Tile32 {
  float v[32][32];
};
struct Tile33 {
  float v[32][33];
};

template <class Tile>
__global__ void transpose(const float* in, float* out) {
  auto& tile = smem<Tile>();
  tile.v[threadIdx.y][threadIdx.x] = in[threadIdx.y * 32 + threadIdx.x];
  __syncthreads();
  out[threadIdx.y * 32 + threadIdx.x] = tile.v[threadIdx.x][threadIdx.y];
}

__global__ void copy_elements(const float* in, float* out, int stride) {
  out[threadIdx.x * stride] = in[threadIdx.x * stride];
}

// Without hooks, as in the plain library.
template <bool kBug>
[[gnu::no_sanitize_thread]] __global__ void order_dependent(float* out) {
  auto& shared = smem<Floats>();
  shared.v[threadIdx.x] = 0;
  __syncthreads();
  shared.v[threadIdx.x] = float(threadIdx.x);
  if (!kBug) __syncthreads();
  float sum = 0;
  for (float value : shared.v) sum += value;
  __syncthreads();
  if (threadIdx.x == 20) *out = sum;
}

template <class With, class Without>
RunPlanted on_floats(With with, Without without, unsigned blocks = 1) {
  return [=](bool bug) {
    const DeviceArray<float> out(kThreads * int(blocks));
    run(bug ? with : without, blocks, kThreads, out.get());
  };
}

void run_last_block(bool bug) {
  const DeviceArray<float> parts(3), sum(1);
  const DeviceArray<int> counter(1);
  run(bug ? last_block_sums<true> : last_block_sums<false>, 3, kThreads, parts.get(), counter.get(),
      sum.get());
}

void run_uninitialised_global(bool bug) {
  const DeviceArray<float> in(kThreads, false), out(kThreads, false);
  run(bug ? uninitialised_global<true> : uninitialised_global<false>, 1, kThreads, in.get(),
      out.get());
}

void run_below_global(bool bug) {
  const DeviceArray<float> in(kThreads), out(kThreads);
  run(bug ? below_global<true> : below_global<false>, 1, kThreads, in.get(), out.get());
}

void run_shared_ends(bool bug, bool above) {
  const DeviceArray<float> out(kThreads);
  if (above) {
    const int last = (32 << 10) / int(sizeof(float)) - 1;
    run(bug ? above_shared<true> : above_shared<false>, 1, kThreads, out.get(), last);
  } else {
    run(bug ? below_shared<true> : below_shared<false>, 1, kThreads, out.get(), 0);
  }
}

void run_misaligned(bool bug) {
  const DeviceArray<float> in(4 * kThreads), out(4 * kThreads);
  run(bug ? misaligned_vector<true> : misaligned_vector<false>, 1, kThreads - 1, in.get(),
      out.get());
}

void run_other_device(bool bug) {
  const DeviceArray<float> data(kThreads, true, 1);
  emulated_device(0).peer_access(1) = !bug;
  run(add_one, 1, kThreads, data.get());
  emulated_device(0).peer_access(1) = false;
}

void run_freed(bool bug) {
  auto data = std::make_unique<DeviceArray<float>>(kThreads);
  float* const pointer = data->get();
  if (bug) data.reset();
  run(add_one, 1, kThreads, pointer);
}

void run_host_memory(bool bug) {
  const DeviceArray<float> device(kThreads);
  std::vector<float> host(kThreads);
  run(bug ? host_memory<true> : host_memory<false>, 1, kThreads, device.get(), host.data());
}

void run_mask(bool bug) {
  const DeviceArray<int> out(kThreads);
  run(bug ? mismatched_mask<true> : mismatched_mask<false>, 1, kThreads, out.get());
}

}  // namespace

std::vector<Planted> planted_kernels() {
  return {
      {"race in a block",
       on_floats(race_in_block<true>, race_in_block<false>),
       {"race: write of 4 bytes, shared memory at byte 0 (@race_in_block)", "thread (1, 0, 0)",
        "write by thread (0, 0, 0) (@race_in_block)"}},
      {"missing barrier",
       on_floats(missing_barrier<true>, missing_barrier<false>, 2),
       {"race: ", "(@missing_barrier write)", "(@missing_barrier read)"}},
      {"missing second barrier",
       on_floats(missing_second_barrier<true>, missing_second_barrier<false>),
       {"race: ", "(@second_barrier write)", "(@second_barrier read)"}},
      {"missing barrier of a warp",
       on_floats(missing_warp_barrier<true>, missing_warp_barrier<false>),
       {"race: ", "(@warp_barrier write)", "(@warp_barrier read)"}},
      {"barrier of a warp where the block needs one",
       on_floats(warp_barrier_for_block<true>, warp_barrier_for_block<false>),
       {"race: ", "(@other_warp write)", "(@other_warp read)"}},
      {"race between blocks",
       on_floats(race_between_blocks<true>, race_between_blocks<false>, 2),
       {"race: write of 4 bytes", "allocation", "write by block (", "(@race_between_blocks)"}},
      {"reader races with another block",
       on_floats(race_of_reader_between_blocks<true>, race_of_reader_between_blocks<false>, 3),
       {"race: ", "by block (", "(@between_blocks read)", "(@between_blocks write)"}},
      {"last block by its index",
       run_last_block,
       {"race: ", "by block (", "(@last_block write)", "(@last_block read)"}},
      {"uninitialised shared memory",
       on_floats(uninitialised_shared<true>, uninitialised_shared<false>),
       {"uninitialised: read of 4 bytes, shared memory at byte 20 (@uninitialised_shared)",
        "thread (5, 0, 0)"}},
      {"uninitialised global memory",
       run_uninitialised_global,
       {"uninitialised: read of 4 bytes", "emu:0", "(@uninitialised_global)"}},
      {"above a buffer",
       on_floats(above_global<true>, above_global<false>),
       {"out of bounds: write of 4 bytes", "emu:0", "(@above_global)", "thread (63, 0, 0)"}},
      {"below a buffer",
       run_below_global,
       {"out of bounds: read of 4 bytes", "emu:0", "(@below_global)", "thread (0, 0, 0)"}},
      {"above shared memory",
       [](bool bug) { run_shared_ends(bug, true); },
       {"out of bounds: write of 4 bytes, byte 32768 of 32768 bytes of shared memory "
        "(@above_shared)"}},
      {"below shared memory",
       [](bool bug) { run_shared_ends(bug, false); },
       {"out of bounds: write of 4 bytes, 4 bytes before shared memory (@below_shared)"}},
      {"misaligned vector",
       run_misaligned,
       {"misaligned: read of 16 bytes", "(vector.h:", "@misaligned)"}},
      {"memory of another device",
       run_other_device,
       {"memory of another device without peer access: read of 4 bytes", "emu:1", "(@add_one)"}},
      {"freed memory", run_freed, {"freed memory: read of 4 bytes", "(@add_one)"}},
      {"memory of the host",
       run_host_memory,
       {"out of bounds: write of 4 bytes, host memory", "(@host_memory)"}},
      {"divergent barrier",
       on_floats(divergent_barrier<true>, divergent_barrier<false>),
       {"@divergent_barrier"}},
      {"barrier that some skip",
       on_floats(skipped_barrier<true>, skipped_barrier<false>),
       {"@skipped_barrier"}},
      {"mismatched mask", run_mask, {"@mismatched_mask"}},
  };
}

void run_transpose(bool padded) {
  const DeviceArray<float> in(1024), out(1024);
  const LaunchConfig config{.block = {32, 32}, .shared_bytes = sizeof(Tile33)};
  run_grid(grid_work(padded ? transpose<Tile33> : transpose<Tile32>, config, in.get(), out.get()));
}

void run_copy(bool strided) {
  const DeviceArray<float> in(256), out(256);
  run(copy_elements, 1, 32, in.get(), out.get(), strided ? 8 : 1);
}

float run_order_dependent(bool with_bug, machine::Order order) {
  const DeviceArray<float> out(1);
  machine::MachineOptions options = machine::machine_options();
  options.order = order;
  const machine::MachineOptionsScope scope(options);
  run(with_bug ? order_dependent<true> : order_dependent<false>, 1, kThreads, out.get());
  return *out.get();
}

}  // namespace convoy::emulator::testing
