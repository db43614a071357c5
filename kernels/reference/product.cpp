#include "kernels/reference/product.h"

#include <cstring>

namespace convoy::reference {
namespace {

std::int64_t round_up(std::int64_t count, std::int64_t to) {
  return (count + to - 1) / to * to;
}

// One row of a panel, in as many registers as the machine needs for it.
using Lanes [[gnu::vector_size(kPanel * sizeof(double))]] = double;

// Adds kCount rows of a (`depth` long, `stride` apart) times a panel of b to as many rows of c.
template <int kCount>
[[gnu::always_inline]] inline void multiply_rows(const double* a, std::int64_t stride,
                                                 const double* b, std::int64_t depth, double* c,
                                                 std::int64_t c_stride) {
  Lanes sums[kCount];
  for (int i = 0; i < kCount; ++i) std::memcpy(&sums[i], c + i * c_stride, sizeof(Lanes));
  for (std::int64_t d = 0; d < depth; ++d) {
    Lanes row;
    std::memcpy(&row, b + d * kPanel, sizeof(Lanes));
    for (int i = 0; i < kCount; ++i) sums[i] += a[i * stride + d] * row;
  }
  for (int i = 0; i < kCount; ++i) std::memcpy(c + i * c_stride, &sums[i], sizeof(Lanes));
}

// Four rows of eight sums fill the registers of AVX-512, two rows those of SSE2.
void multiply_panel_base(const double* a, std::int64_t stride, const double* b, std::int64_t depth,
                         double* c, std::int64_t c_stride) {
  multiply_rows<2>(a, stride, b, depth, c, c_stride);
  multiply_rows<2>(a + 2 * stride, stride, b, depth, c + 2 * c_stride, c_stride);
}

#ifdef __x86_64__
[[gnu::target("avx512f")]] void multiply_panel_avx512(const double* a, std::int64_t stride,
                                                      const double* b, std::int64_t depth,
                                                      double* c, std::int64_t c_stride) {
  multiply_rows<4>(a, stride, b, depth, c, c_stride);
}

auto* choose_multiply_panel() {
  return __builtin_cpu_supports("avx512f") ? multiply_panel_avx512 : multiply_panel_base;
}
#else
auto* choose_multiply_panel() {
  return multiply_panel_base;
}
#endif

}  // namespace

ProductBlock::ProductBlock(std::int64_t rows, std::int64_t columns, std::int64_t depth)
    : rows_(round_up(rows, kRows)),
      columns_(round_up(std::min(columns, kColumns), kPanel)),
      depth_(std::min(depth, kDepth)),
      a_(rows_ * depth_),
      b_(columns_ * depth_),
      c_(rows_ * columns_) {}

void ProductBlock::clear() {
  std::fill(c_.begin(), c_.end(), 0.0);
}

void ProductBlock::multiply(std::int64_t depth) {
  static auto* const multiply_panel = choose_multiply_panel();
  for (std::int64_t row = 0; row < rows_; row += kRows) {
    double* c = c_.data() + row * columns_;
    for (std::int64_t column = 0; column < columns_; column += kPanel) {
      multiply_panel(a(row), depth_, b(column), depth, c + column, columns_);
    }
  }
}

}  // namespace convoy::reference
