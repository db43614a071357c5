#include "kernels/cuda/conformance.h"

#include "kernels/cuda/gpu_stream.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/ptx.h"
#include "kernels/cuda/shared.h"

namespace convoy::CONVOY_GPU {
namespace {

constexpr int kLanes = 32;

using Word = std::uint32_t;

__device__ __forceinline__ int this_lane() {
  return static_cast<int>(threadIdx.x);
}

template <int Words>
struct CopyStorage {
  alignas(16) Word words[kLanes][Words];
};

// Two groups of copies, of the lower and of the upper lanes' words. The lower lanes look at theirs
// while the second group may be under way.
template <int Words>
__global__ void copy_kernel(const Word* in, Word* out) {
  auto& shared = smem<CopyStorage<Words>>();
  const int lane = this_lane();
  const bool valid = lane % 3 != 0;
  if (lane < 16) ptx::cp_async<4 * Words>(shared.words[lane], in + lane * Words, valid);
  ptx::cp_async_commit();
  if (lane >= 16) ptx::cp_async<4 * Words>(shared.words[lane], in + lane * Words, valid);
  ptx::cp_async_commit();
  ptx::cp_async_wait<1>();
  if (lane < 16) out[kLanes * Words + lane] = shared.words[lane][0];
  ptx::cp_async_wait<0>();
  __syncthreads();
  const int other = kLanes - 1 - lane;
  for (int i = 0; i < Words; ++i) out[other * Words + i] = shared.words[other][i];
}

struct MatrixStorage {
  alignas(16) Word rows[64][4];
};

template <bool Transposed>
__global__ void ldmatrix_kernel(const Word* in, Word* out) {
  auto& shared = smem<MatrixStorage>();
  const int lane = this_lane();
  for (int i = lane; i < 64 * 4; i += kLanes) shared.rows[i / 4][i % 4] = in[i];
  __syncthreads();
  const void* const rows[2] = {shared.rows[ldmatrix_row(0, lane)],
                               shared.rows[ldmatrix_row(1, lane)]};
  Word registers[2][4];
  ptx::ldmatrix_x4<Transposed>(registers, rows);
  CONVOY_UNROLL
  for (int i = 0; i < 8; ++i) out[i * kLanes + lane] = registers[i / 4][i % 4];
}

__global__ void to_tf32_kernel(const Word* in, Word* out) {
  for (int i = this_lane(); i < 2 * kLanes; i += kLanes) out[i] = ptx::to_tf32(in[i]);
}

template <bool Bf16Operands>
__global__ void product_kernel(const float* in, float* out) {
  const int lane = this_lane();
  float d[2][2][2][4];
  Word a[2][4], b[2][4];
  CONVOY_UNROLL
  for (int i = 0; i < 32; ++i) d[i / 16][i / 8 % 2][i / 4 % 2][i % 4] = in[i * kLanes + lane];
  const auto* operands = reinterpret_cast<const Word*>(in) + 32 * kLanes;
  CONVOY_UNROLL
  for (int i = 0; i < 8; ++i) {
    a[i / 4][i % 4] = operands[i * kLanes + lane];
    b[i / 4][i % 4] = operands[(8 + i) * kLanes + lane];
  }
  if constexpr (Bf16Operands) {
    ptx::mma_bf16(d, a, b);
  } else {
    ptx::mma_tf32(d, a, b);
  }
  CONVOY_UNROLL
  for (int i = 0; i < 32; ++i) out[i * kLanes + lane] = d[i / 16][i / 8 % 2][i / 4 % 2][i % 4];
}

LaunchConfig one_warp(Stream& stream, std::size_t shared_bytes) {
  return {.block = {kLanes}, .shared_bytes = shared_bytes, .stream = handle(stream)};
}

template <int Words>
void run_copy(Stream& stream, const Word* in, Word* out) {
  launch(copy_kernel<Words>, one_warp(stream, sizeof(CopyStorage<Words>)), in, out);
}

}  // namespace

ConformanceSizes conformance_sizes(PtxWrapper wrapper) {
  switch (wrapper) {
    case PtxWrapper::copy_16:
      return {4 * kLanes, 4 * kLanes + 16};
    case PtxWrapper::copy_8:
      return {2 * kLanes, 2 * kLanes + 16};
    case PtxWrapper::copy_4:
      return {kLanes, kLanes + 16};
    case PtxWrapper::ldmatrix:
    case PtxWrapper::ldmatrix_transposed:
      return {64 * 4, 8 * kLanes};
    case PtxWrapper::to_tf32:
      return {2 * kLanes, 2 * kLanes};
    case PtxWrapper::mma_bf16:
    case PtxWrapper::mma_tf32:
      break;
  }
  return {(32 + 16) * kLanes, 32 * kLanes};
}

void run_conformance(Stream& stream, PtxWrapper wrapper, ConstBuffer input, Buffer output) {
  const auto* in = input.as<Word>();
  auto* out = output.as<Word>();
  const LaunchConfig matrices = one_warp(stream, sizeof(MatrixStorage));
  const LaunchConfig plain = one_warp(stream, 0);
  switch (wrapper) {
    case PtxWrapper::copy_16:
      return run_copy<4>(stream, in, out);
    case PtxWrapper::copy_8:
      return run_copy<2>(stream, in, out);
    case PtxWrapper::copy_4:
      return run_copy<1>(stream, in, out);
    case PtxWrapper::ldmatrix:
      return launch(ldmatrix_kernel<false>, matrices, in, out);
    case PtxWrapper::ldmatrix_transposed:
      return launch(ldmatrix_kernel<true>, matrices, in, out);
    case PtxWrapper::to_tf32:
      return launch(to_tf32_kernel, plain, in, out);
    case PtxWrapper::mma_bf16:
      return launch(product_kernel<true>, plain, input.as<float>(), output.as<float>());
    case PtxWrapper::mma_tf32:
      return launch(product_kernel<false>, plain, input.as<float>(), output.as<float>());
  }
}

}  // namespace convoy::CONVOY_GPU
