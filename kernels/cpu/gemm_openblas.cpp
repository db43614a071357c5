#include <cblas.h>
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "kernels/base/error.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/library.h"

namespace convoy::cpu {
namespace {

/// How BLAS is told about one of our operands, which has `columns` columns. A matrix of one row or
/// column may have both strides 1; BLAS insists on a leading dimension that would hold all columns.
struct BlasOperand {
  BlasOperand(const GemmOperand& operand, std::int64_t columns) {
    const bool rows_first = operand.column_stride == 1;
    transpose = rows_first ? CblasNoTrans : CblasTrans;
    leading = static_cast<int>(rows_first ? std::max(operand.row_stride, columns)
                                          : operand.column_stride);
  }
  CBLAS_TRANSPOSE transpose;
  int leading;
};

}  // namespace

void open_library() {
  constexpr int kOpenMp = 2;
  CONVOY_CHECK(openblas_get_parallel() == kOpenMp,
               "OpenBLAS: this library was not built for OpenMP ({}); install libopenblas0-openmp",
               openblas_get_config());
}

std::string library_name() {
  // "OpenBLAS 0.3.21 NO_LAPACKE ...": the first two words.
  const std::string config = openblas_get_config();
  return config.substr(0, config.find(' ', config.find(' ') + 1));
}

std::size_t gemm_scratch_bytes(int) {
  return 0;
}

void gemm(std::int64_t m, std::int64_t n, std::int64_t k, GemmOperand a, GemmOperand b, bool add,
          float* c, std::int64_t ldc, void*) {
  const BlasOperand left(a, k), right(b, n);
  cblas_sgemm(CblasRowMajor, left.transpose, right.transpose, static_cast<int>(m),
              static_cast<int>(n), static_cast<int>(k), 1, a.data, left.leading, b.data,
              right.leading, add ? 1.0f : 0.0f, c, static_cast<int>(ldc));
}

}  // namespace convoy::cpu
