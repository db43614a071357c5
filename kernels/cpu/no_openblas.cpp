// Our own matrix products: tiles of c over the cores, each with its own packed panels. The depth of
// a sum is never cut by threads, so bits do not depend on their number.
#include <omp.h>

#include <algorithm>

#include "kernels/cpu/gemm.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/library.h"
#include "kernels/cpu/parallel.h"

namespace convoy::cpu {

void open_library() {
  isa();
}

std::string library_name() {
  return "own matrix products";
}

std::size_t gemm_scratch_bytes(int threads) {
  return static_cast<std::size_t>(threads * kGemmPack) * sizeof(float);
}

void gemm(std::int64_t m, std::int64_t n, std::int64_t k, GemmOperand a, GemmOperand b, bool add,
          float* c, std::int64_t ldc, void* scratch) {
  const std::int64_t rows = (m + kGemmRows - 1) / kGemmRows;
  const std::int64_t columns = (n + kGemmColumns - 1) / kGemmColumns;
  parallel_for(rows * columns, kGemmRows * k, [=](std::int64_t tile) {
    const std::int64_t i = tile % rows * kGemmRows, j = tile / rows * kGemmColumns;
    const GemmOperand a_tile = {a.data + i * a.row_stride, a.row_stride, a.column_stride};
    const GemmOperand b_tile = {b.data + j * b.column_stride, b.row_stride, b.column_stride};
    loops().gemm_tile(std::min(kGemmRows, m - i), std::min(kGemmColumns, n - j), k, a_tile, b_tile,
                      add, c + i * ldc + j, ldc,
                      static_cast<float*>(scratch) + omp_get_thread_num() * kGemmPack);
  });
}

}  // namespace convoy::cpu
