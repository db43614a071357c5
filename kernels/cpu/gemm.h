// Matrix products of builds without oneDNN: by OpenBLAS or our own, one source each.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/vector/table.h"

namespace convoy::cpu {

/// A row-major matrix with `columns` between its rows.
inline GemmOperand row_major(const float* data, std::int64_t columns) {
  return {data, columns, 1};
}

/// The transpose of a row-major matrix with `columns` between its rows.
inline GemmOperand transposed(const float* data, std::int64_t columns) {
  return {data, 1, columns};
}

/// Scratch memory of a product on `threads` threads.
std::size_t gemm_scratch_bytes(int threads);

/// c (m, n), row-major with `ldc` between its rows, = or += a (m, k) * b (k, n). On the calling
/// thread and its OpenMP threads.
void gemm(std::int64_t m, std::int64_t n, std::int64_t k, GemmOperand a, GemmOperand b, bool add,
          float* c, std::int64_t ldc, void* scratch);

}  // namespace convoy::cpu
