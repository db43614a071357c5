#include "kernels/reference/product.h"

namespace convoy::reference {
namespace {

std::int64_t round_up(std::int64_t count, std::int64_t to) {
  return (count + to - 1) / to * to;
}

}  // namespace

void multiply_panel(const double* a0, const double* a1, const double* b, std::int64_t depth,
                    double* c0, double* c1) {
  // Copies, so that the compiler may keep the sums in registers.
  double sum0[kPanel], sum1[kPanel];
  std::copy_n(c0, kPanel, sum0);
  std::copy_n(c1, kPanel, sum1);
  for (std::int64_t d = 0; d < depth; ++d, b += kPanel) {
    for (std::int64_t j = 0; j < kPanel; ++j) sum0[j] += a0[d] * b[j];
    for (std::int64_t j = 0; j < kPanel; ++j) sum1[j] += a1[d] * b[j];
  }
  std::copy_n(sum0, kPanel, c0);
  std::copy_n(sum1, kPanel, c1);
}

ProductBlock::ProductBlock(std::int64_t rows, std::int64_t columns, std::int64_t depth)
    : rows_(round_up(rows, kRowPair)),
      columns_(round_up(std::min(columns, kColumns), kPanel)),
      depth_(std::min(depth, kDepth)),
      a_(rows_ * depth_),
      b_(columns_ * depth_),
      c_(rows_ * columns_) {}

void ProductBlock::clear() {
  std::fill(c_.begin(), c_.end(), 0.0);
}

void ProductBlock::multiply(std::int64_t depth) {
  for (std::int64_t row = 0; row < rows_; row += kRowPair) {
    double* c0 = c_.data() + row * columns_;
    for (std::int64_t column = 0; column < columns_; column += kPanel) {
      multiply_panel(a(row), a(row + 1), b(column), depth, c0 + column, c0 + columns_ + column);
    }
  }
}

}  // namespace convoy::reference
