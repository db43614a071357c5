// What this GPU reaches where nothing else is in the way: copies, reads from L2, mma.sync,
// launches. A program of its own for scripts/gpu_check; prints a line of JSON for each.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace {

constexpr int kRepeats = 9;

void check(cudaError_t result, const char* what) {
  if (result == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(result));
  std::exit(1);
}

/// Milliseconds of the fastest of some calls of `work`, which queues on the default stream.
template <class Work>
float best_ms(const Work& work) {
  cudaEvent_t begin, end;
  check(cudaEventCreate(&begin), "event");
  check(cudaEventCreate(&end), "event");
  work();
  float best = 1e30f;
  for (int i = 0; i < kRepeats; ++i) {
    check(cudaEventRecord(begin), "record");
    work();
    check(cudaEventRecord(end), "record");
    check(cudaEventSynchronize(end), "run");
    float ms = 0;
    check(cudaEventElapsedTime(&ms, begin, end), "time");
    best = std::min(best, ms);
  }
  check(cudaGetLastError(), "launch");
  return best;
}

void tell(const char* name, double value, const char* unit) {
  std::printf("{\"ceiling\":\"%s\",\"value\":%.6g,\"unit\":\"%s\"}\n", name, value, unit);
  std::fflush(stdout);
}

__global__ void copy_words(const uint4* from, uint4* to, std::size_t count) {
  const std::size_t step = std::size_t(gridDim.x) * blockDim.x;
  for (std::size_t i = std::size_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
    to[i] = from[i];
  }
}

// Reads `count` words `rounds` times; past L1, so that what fits into L2 is read from there.
__global__ void read_words(const uint4* from, std::size_t count, int rounds, unsigned* sink) {
  const std::size_t step = std::size_t(gridDim.x) * blockDim.x;
  unsigned sum = 0;
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = std::size_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
      const uint4 word = __ldcg(from + i);
      sum += word.x ^ word.y ^ word.z ^ word.w;
    }
  }
  if (sum == 0x12345678) *sink = sum;
}

constexpr int kChains = 8;

// Products on tensor cores whose operands stay in registers.
__global__ void mma_loop(int rounds, float* sink) {
  float sum[kChains][4] = {};
  const unsigned lane = threadIdx.x % 32;
  unsigned a[4], b[2];
  for (unsigned i = 0; i < 4; ++i) a[i] = 0x3f803f80u + lane * 65537u * (i + 1);
  for (unsigned i = 0; i < 2; ++i) b[i] = 0x3f803f80u + lane * 65537u * (i + 3);
  for (int round = 0; round < rounds; ++round) {
#pragma unroll
    for (int c = 0; c < kChains; ++c) {
      asm volatile(
          "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
          "{%8,%9}, {%0,%1,%2,%3};\n"
          : "+f"(sum[c][0]), "+f"(sum[c][1]), "+f"(sum[c][2]), "+f"(sum[c][3])
          : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    }
  }
  float all = 0;
  for (int c = 0; c < kChains; ++c) all += sum[c][0] + sum[c][1] + sum[c][2] + sum[c][3];
  if (all == 0.5f) *sink = all;
}

__global__ void nothing() {}

void memory(int sms) {
  constexpr std::size_t kBytes = std::size_t{2} << 30, kSmall = std::size_t{16} << 20;
  void *from = nullptr, *to = nullptr;
  check(cudaMalloc(&from, kBytes), "memory");
  check(cudaMalloc(&to, kBytes), "memory");
  check(cudaMemset(from, 1, kBytes), "memory");
  const float runtime =
      best_ms([&] { cudaMemcpyAsync(to, from, kBytes, cudaMemcpyDeviceToDevice, nullptr); });
  tell("copy by cudaMemcpy", 2.0 * kBytes / runtime * 1e3, "bytes/s");
  const float kernel = best_ms([&] {
    copy_words<<<sms * 8, 512>>>(static_cast<uint4*>(from), static_cast<uint4*>(to), kBytes / 16);
  });
  tell("copy by a kernel", 2.0 * kBytes / kernel * 1e3, "bytes/s");
  constexpr int kRounds = 64;
  const float small = best_ms([&] {
    read_words<<<sms * 4, 512>>>(static_cast<uint4*>(from), kSmall / 16, kRounds,
                                 static_cast<unsigned*>(to));
  });
  tell("read of 16 MiB from L2", double(kSmall) * kRounds / small * 1e3, "bytes/s");
  check(cudaFree(from), "memory");
  check(cudaFree(to), "memory");
}

void products(int sms) {
  constexpr int kRounds = 20000, kWarps = 8;
  float* sink = nullptr;
  check(cudaMalloc(&sink, sizeof *sink), "memory");
  const float ms = best_ms([&] { mma_loop<<<sms * 2, kWarps * 32>>>(kRounds, sink); });
  const double flops = 2.0 * 16 * 8 * 16 * kChains * double(kRounds) * kWarps * sms * 2;
  tell("mma.sync m16n8k16 bf16 loop", flops / ms * 1e3, "FLOP/s");
  check(cudaFree(sink), "memory");
}

void launches() {
  constexpr int kCount = 1000;
  const float plain = best_ms([&] {
    for (int i = 0; i < kCount; ++i) nothing<<<1, 32>>>();
  });
  tell("launch of an empty kernel", plain / kCount * 1e-3, "s");
  cudaStream_t stream;
  check(cudaStreamCreate(&stream), "stream");
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "capture");
  for (int i = 0; i < kCount; ++i) nothing<<<1, 32, 0, stream>>>();
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  check(cudaStreamEndCapture(stream, &graph), "capture");
  check(cudaGraphInstantiate(&exec, graph, 0), "graph");
  const float replayed = best_ms([&] { cudaGraphLaunch(exec, nullptr); });
  tell("empty kernel in a graph", replayed / kCount * 1e-3, "s");
}

}  // namespace

int main() {
  cudaDeviceProp device;
  check(cudaGetDeviceProperties(&device, 0), "device");
  memory(device.multiProcessorCount);
  products(device.multiProcessorCount);
  launches();
  return 0;
}
