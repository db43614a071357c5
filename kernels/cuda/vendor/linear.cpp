// Linear by cuBLASLt, for which row-major matrices are transposed ones:
//     forward           y^T  (out, rows) = w  (out, in)   * x^T  (in, rows)
//     input gradient    dx^T (in, rows)  = w^T (in, out)  * dy^T (out, rows)
//     weight gradient   dw^T (in, out)   = x^T (in, rows) * dy   (rows, out)
#include "kernels/base/error.h"
#include "kernels/cuda/bias_gradient.h"
#include "kernels/cuda/gpu_stream.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/operands.h"
#include "kernels/cuda/precision.h"
#include "kernels/cuda/vendor/kernels.h"
#include "kernels/cuda/vendor/scratch.h"
#include "kernels/cuda/vendor/vendor.h"

namespace convoy::cuda::vendor {
namespace {

constexpr std::size_t kWorkspace = std::size_t{32} << 20;

/// A matrix in column-major memory: `rows` x `columns`, one column after the other.
struct Matrix {
  ConstBuffer data;
  std::int64_t rows, columns;
  bool transposed = false;  ///< the product takes its transpose
};

struct Product {
  Matrix a, b;
  Buffer result;
  std::int64_t rows, columns;
  ConstBuffer bias = {};  ///< of the result's type, one value per row
};

template <class Raw>
using Owned = std::unique_ptr<std::remove_pointer_t<Raw>, cublasStatus_t (*)(Raw)>;

cudaDataType_t cuda_type(DType dtype) {
  if (dtype == DType::f64) return CUDA_R_64F;
  return dtype == DType::bf16 ? CUDA_R_16BF : CUDA_R_32F;
}

cublasComputeType_t compute_type(DType dtype, bool tf32) {
  if (dtype == DType::f64) return CUBLAS_COMPUTE_64F;
  return dtype == DType::f32 && tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
}

Owned<cublasLtMatrixLayout_t> layout_of(const char* kernel, DType dtype, std::int64_t rows,
                                        std::int64_t columns) {
  cublasLtMatrixLayout_t raw = nullptr;
  check(calls().cublasLtMatrixLayoutCreate(&raw, cuda_type(dtype), static_cast<uint64_t>(rows),
                                           static_cast<uint64_t>(columns), rows),
        kernel);
  return {raw, calls().cublasLtMatrixLayoutDestroy};
}

template <class T>
void set(const char* kernel, cublasLtMatmulDesc_t of, cublasLtMatmulDescAttributes_t what,
         const T& value) {
  check(calls().cublasLtMatmulDescSetAttribute(of, what, &value, sizeof value), kernel);
}

Owned<cublasLtMatmulDesc_t> operation_of(const char* kernel, const Product& p, bool tf32) {
  const DType dtype = p.a.data.dtype;
  cublasLtMatmulDesc_t raw = nullptr;
  check(calls().cublasLtMatmulDescCreate(&raw, compute_type(dtype, tf32),
                                         dtype == DType::f64 ? CUDA_R_64F : CUDA_R_32F),
        kernel);
  Owned<cublasLtMatmulDesc_t> made(raw, calls().cublasLtMatmulDescDestroy);
  const auto operation = [](bool transposed) { return transposed ? CUBLAS_OP_T : CUBLAS_OP_N; };
  set(kernel, raw, CUBLASLT_MATMUL_DESC_TRANSA, operation(p.a.transposed));
  set(kernel, raw, CUBLASLT_MATMUL_DESC_TRANSB, operation(p.b.transposed));
  if (p.bias) {
    set(kernel, raw, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
    set(kernel, raw, CUBLASLT_MATMUL_DESC_BIAS_POINTER, p.bias.data);
  }
  return made;
}

Owned<cublasLtMatmulPreference_t> preference_of(const char* kernel, bool deterministic) {
  cublasLtMatmulPreference_t raw = nullptr;
  check(calls().cublasLtMatmulPreferenceCreate(&raw), kernel);
  Owned<cublasLtMatmulPreference_t> made(raw, calls().cublasLtMatmulPreferenceDestroy);
  const std::size_t bytes = kWorkspace;
  check(calls().cublasLtMatmulPreferenceSetAttribute(raw, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                     &bytes, sizeof bytes),
        kernel);
  if (deterministic) {  // no sums in the order in which blocks happen to end
    const std::uint32_t schemes =
        CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE | CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE;
    check(calls().cublasLtMatmulPreferenceSetAttribute(
              raw, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &schemes, sizeof schemes),
          kernel);
  }
  return made;
}

void multiply(Stream& stream, const char* kernel, const Product& p) {
  const Lock device(stream, kernel);
  const DType dtype = p.a.data.dtype;
  const auto operation = operation_of(kernel, p, allows_tf32(stream));
  const auto a = layout_of(kernel, dtype, p.a.rows, p.a.columns);
  const auto b = layout_of(kernel, dtype, p.b.rows, p.b.columns);
  const auto d = layout_of(kernel, p.result.dtype, p.rows, p.columns);
  const auto preference = preference_of(kernel, device->deterministic);
  cublasLtMatmulHeuristicResult_t found = {};
  int count = 0;
  check(
      calls().cublasLtMatmulAlgoGetHeuristic(device->cublas, operation.get(), a.get(), b.get(),
                                             d.get(), d.get(), preference.get(), 1, &found, &count),
      kernel);
  CONVOY_CHECK(count > 0, "--kernels vendor: cuBLASLt has no algorithm for {}", kernel);
  const float one = 1, zero = 0;
  const double wide_one = 1, wide_zero = 0;
  const bool wide = dtype == DType::f64;
  const void* const alpha = wide ? static_cast<const void*>(&wide_one) : &one;
  const void* const beta = wide ? static_cast<const void*>(&wide_zero) : &zero;
  // A bias may lie at the front of the scratch.
  char* const workspace =
      static_cast<char*>(stream.scratch(kWorkspace + Scratch::padded(8 * std::size_t(p.rows))));
  check(calls().cublasLtMatmul(
            device->cublas, operation.get(), alpha, p.a.data.data, a.get(), p.b.data.data, b.get(),
            beta, p.result.data, d.get(), p.result.data, d.get(), &found.algo,
            workspace + Scratch::padded(8 * std::size_t(p.rows)), kWorkspace, handle(stream)),
        kernel);
}

// The bias in the type of the result, at the front of the scratch that multiply() asks for.
ConstBuffer bias_like(Stream& stream, const LinearShape& shape, ConstBuffer b, DType dtype) {
  if (!b || b.dtype == dtype) return b;
  const std::size_t bytes = kWorkspace + Scratch::padded(8 * std::size_t(shape.out));
  const Buffer same{stream.scratch(bytes), dtype};
  cuda::cast(stream, shape.out, b, same);
  return same;
}

}  // namespace

void linear_forward(Stream& stream, const LinearShape& shape, ConstBuffer x, ConstBuffer w,
                    ConstBuffer b, Buffer y) {
  constexpr const char* kName = "linear_forward";
  check_plain(kName, {x, w, b, y});
  require_parameter(kName, dtype_of_all(kName, {x, w, y}), b);
  if (shape.rows == 0) return;
  multiply(stream, kName,
           {.a = {w, shape.in, shape.out, true},
            .b = {x, shape.in, shape.rows},
            .result = y,
            .rows = shape.out,
            .columns = shape.rows,
            .bias = bias_like(stream, shape, b, y.dtype)});
}

void linear_input_gradient(Stream& stream, const LinearShape& shape, ConstBuffer dy, ConstBuffer w,
                           Buffer dx) {
  constexpr const char* kName = "linear_input_gradient";
  check_plain(kName, {dy, w, dx});
  dtype_of_all(kName, {dy, w, dx});
  if (shape.rows == 0) return;
  multiply(stream, kName,
           {.a = {w, shape.in, shape.out},
            .b = {dy, shape.out, shape.rows},
            .result = dx,
            .rows = shape.in,
            .columns = shape.rows});
}

void linear_weight_gradient(Stream& stream, const LinearShape& shape, ConstBuffer x, ConstBuffer dy,
                            Buffer dw, Buffer db) {
  constexpr const char* kName = "linear_weight_gradient";
  if (shape.rows == 0) return cuda::linear_weight_gradient(stream, shape, x, dy, dw, db);
  check_plain(kName, {x, dy, dw, db});
  const DType dtype = dtype_of_all(kName, {x, dy});
  require_parameter(kName, dtype, dw);
  require_parameter(kName, dtype, db);
  multiply(stream, kName,
           {.a = {x, shape.in, shape.rows},
            .b = {dy, shape.out, shape.rows, true},
            .result = dw,
            .rows = shape.in,
            .columns = shape.out});
  if (db) bias_gradient(stream, {shape.rows, shape.out, 1, 1}, dy, db);
}

}  // namespace convoy::cuda::vendor
