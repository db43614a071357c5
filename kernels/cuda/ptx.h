// The instructions of sm_80 that CUDA C++ has no words for: asynchronous copies to shared memory,
// loads of matrix fragments, products on tensor cores. Device bodies for GPUs; in the emulator
// calls of the models in kernels/emulator/ptx_models.h. No other file holds inline PTX.
//
// Fragments. A warp holds a 16 x (32 bytes) block of an operand, K along the bytes (16 of bf16 or
// 8 of tf32), in four registers per lane, with g = lane / 4 and t = lane % 4:
//
//     register 0: row g,     bytes 4t..4t+3        register 2: row g,     bytes 16 + 4t..
//     register 1: row g + 8, bytes 4t..4t+3        register 3: row g + 8, bytes 16 + 4t..
//
// which is the documented A operand of mma.m16n8k16 (and of m16n8k8 tf32), and two B operands of 8
// columns: registers 0 and 2, and 1 and 3. Accumulators of a 16 x 16 block are two fragments D.
#pragma once

#include <cstdint>

#include "kernels/cuda/platform.h"

#ifndef __CUDACC__
#include "kernels/emulator/async_copy.h"
#include "kernels/emulator/ptx_models.h"
#endif

namespace convoy::CONVOY_GPU::ptx {

#ifdef __CUDACC__

__device__ __forceinline__ unsigned shared_address(const void* pointer) {
  return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

/// Starts copying Bytes (16, past L1; 8 or 4, through L1) from global `from` to shared `to`, both
/// aligned to Bytes; zeros instead where not `valid`, and `from` is then any legal address.
template <int Bytes>
__device__ __forceinline__ void cp_async(void* to, const void* from, bool valid) {
  static_assert(Bytes == 16 || Bytes == 8 || Bytes == 4);
  const int size = valid ? Bytes : 0;
  if constexpr (Bytes == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(shared_address(to)),
                 "l"(from), "r"(size)
                 : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;\n" ::"r"(shared_address(to)),
                 "l"(from), "n"(Bytes), "r"(size)
                 : "memory");
  }
}

/// Closes the group of this thread's copies since the last call; it may be empty.
__device__ __forceinline__ void cp_async_commit() {
  asm volatile("cp.async.commit_group;\n" ::: "memory");
}

/// Waits until at most the last Pending groups of this thread are under way. Other threads' copies
/// need a barrier after their own wait.
template <int Pending>
__device__ __forceinline__ void cp_async_wait() {
  asm volatile("cp.async.wait_group %0;\n" ::"n"(Pending) : "memory");
}

/// Loads `Count` times four 8x8 matrices of 16-bit elements. Lane i gives the address of row i % 8
/// of matrix i / 8 (16 bytes, aligned); register j gets the lane's share of matrix j: row lane / 4,
/// elements 2 (lane % 4) and the next; Transposed: the same of the transposed matrix.
template <bool Transposed, int Count>
__device__ __forceinline__ void ldmatrix_x4(std::uint32_t (&to)[Count][4],
                                            const void* const (&rows)[Count]) {
#pragma unroll
  for (int i = 0; i < Count; ++i) {
    if constexpr (Transposed) {
      asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\n"
                   : "=r"(to[i][0]), "=r"(to[i][1]), "=r"(to[i][2]), "=r"(to[i][3])
                   : "r"(shared_address(rows[i]))
                   : "memory");
    } else {
      asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
                   : "=r"(to[i][0]), "=r"(to[i][1]), "=r"(to[i][2]), "=r"(to[i][3])
                   : "r"(shared_address(rows[i]))
                   : "memory");
    }
  }
}

/// f32 to tf32, to nearest, ties away from zero, in the upper 19 bits.
__device__ __forceinline__ std::uint32_t to_tf32(std::uint32_t value) {
  std::uint32_t result;
  asm("cvt.rna.tf32.f32 %0, %1;\n" : "=r"(result) : "f"(__uint_as_float(value)));
  return result;
}

__device__ __forceinline__ void mma_m16n8k16(float (&d)[4], const std::uint32_t (&a)[4],
                                             std::uint32_t b0, std::uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ __forceinline__ void mma_m16n8k8(float (&d)[4], const std::uint32_t (&a)[4],
                                            std::uint32_t b0, std::uint32_t b1) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/// d += a b^T over one k-step of a warp's tile: Rows x Columns blocks of 16 x 16, bf16 operands.
template <int Rows, int Columns>
__device__ __forceinline__ void mma_bf16(float (&d)[Rows][Columns][2][4],
                                         const std::uint32_t (&a)[Rows][4],
                                         const std::uint32_t (&b)[Columns][4]) {
#pragma unroll
  for (int i = 0; i < Rows; ++i) {
#pragma unroll
    for (int j = 0; j < Columns; ++j) {
      mma_m16n8k16(d[i][j][0], a[i], b[j][0], b[j][2]);
      mma_m16n8k16(d[i][j][1], a[i], b[j][1], b[j][3]);
    }
  }
}

/// The same of f32 operands, which are rounded to tf32 first.
template <int Rows, int Columns>
__device__ __forceinline__ void mma_tf32(float (&d)[Rows][Columns][2][4],
                                         std::uint32_t (&a)[Rows][4],
                                         std::uint32_t (&b)[Columns][4]) {
#pragma unroll
  for (auto& block : a) {
#pragma unroll
    for (auto& value : block) value = to_tf32(value);
  }
#pragma unroll
  for (auto& block : b) {
#pragma unroll
    for (auto& value : block) value = to_tf32(value);
  }
#pragma unroll
  for (int i = 0; i < Rows; ++i) {
#pragma unroll
    for (int j = 0; j < Columns; ++j) {
      mma_m16n8k8(d[i][j][0], a[i], b[j][0], b[j][2]);
      mma_m16n8k8(d[i][j][1], a[i], b[j][1], b[j][3]);
    }
  }
}

#else

template <int Bytes>
void cp_async(void* to, const void* from, bool valid) {
  static_assert(Bytes == 16 || Bytes == 8 || Bytes == 4);
  emulator::machine::copy_async(to, from, Bytes, valid ? Bytes : 0);
}

inline void cp_async_commit() {
  emulator::machine::copy_async_commit();
}

template <int Pending>
void cp_async_wait() {
  emulator::machine::copy_async_wait(Pending);
}

template <bool Transposed, int Count>
void ldmatrix_x4(std::uint32_t (&to)[Count][4], const void* const (&rows)[Count],
                 emulator::machine::Site site = emulator::machine::Site::here()) {
  emulator::machine::ldmatrix_x4(Count, Transposed, to[0], rows, site);
}

inline std::uint32_t to_tf32(std::uint32_t value) {
  return emulator::machine::tf32_model(value);
}

template <int Rows, int Columns>
void mma_bf16(float (&d)[Rows][Columns][2][4], const std::uint32_t (&a)[Rows][4],
              const std::uint32_t (&b)[Columns][4],
              emulator::machine::Site site = emulator::machine::Site::here()) {
  emulator::machine::mma_bf16(Rows, Columns, d[0][0][0], a[0], b[0], site);
}

template <int Rows, int Columns>
void mma_tf32(float (&d)[Rows][Columns][2][4], const std::uint32_t (&a)[Rows][4],
              const std::uint32_t (&b)[Columns][4],
              emulator::machine::Site site = emulator::machine::Site::here()) {
  emulator::machine::mma_tf32(Rows, Columns, d[0][0][0], a[0], b[0], site);
}

#endif

}  // namespace convoy::CONVOY_GPU::ptx
