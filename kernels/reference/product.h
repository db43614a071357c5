// Matrix product c = a b in double, with operands given as functions of their indices: the one
// inner loop of convolution and linear. Blocks of both operands are copied so that the loop reads
//
//     a block: rows x depth, row by row        b block: panels of 8 columns, depth x 8 each
//
// Every sum runs over depth in ascending order, whatever the blocks and the width of vectors.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace convoy::reference {

inline constexpr std::int64_t kPanel = 8;
inline constexpr std::int64_t kRows = 4;

/// Operands of one block, copied to double. Rows and columns are filled up with zeros.
class ProductBlock {
 public:
  static constexpr std::int64_t kColumns = 256;
  static constexpr std::int64_t kDepth = 512;

  ProductBlock(std::int64_t rows, std::int64_t columns, std::int64_t depth);

  /// Starts the next block of columns with c = 0.
  void clear();
  double* a(std::int64_t row) { return a_.data() + row * depth_; }
  double* b(std::int64_t column) { return b_.data() + column / kPanel * kPanel * depth_; }
  const double* c(std::int64_t row) const { return c_.data() + row * columns_; }
  /// c += a b over the first `depth` places.
  void multiply(std::int64_t depth);

 private:
  std::int64_t rows_, columns_, depth_;
  std::vector<double> a_, b_, c_;
};

/// Calls store(row, column, sum over d of a(row, d) * b(d, column)) for all rows and columns.
template <class A, class B, class Store>
void product(std::int64_t rows, std::int64_t columns, std::int64_t depth, A a, B b, Store store) {
  ProductBlock block(rows, columns, depth);
  for (std::int64_t first = 0; first < columns; first += ProductBlock::kColumns) {
    const std::int64_t width = std::min(columns - first, ProductBlock::kColumns);
    block.clear();
    for (std::int64_t start = 0; start < depth; start += ProductBlock::kDepth) {
      const std::int64_t length = std::min(depth - start, ProductBlock::kDepth);
      for (std::int64_t row = 0; row < rows; ++row) {
        double* target = block.a(row);
        for (std::int64_t d = 0; d < length; ++d) target[d] = a(row, start + d);
      }
      for (std::int64_t column = 0; column < width; ++column) {
        double* target = block.b(column) + column % kPanel;
        for (std::int64_t d = 0; d < length; ++d) target[d * kPanel] = b(start + d, first + column);
      }
      block.multiply(length);
    }
    for (std::int64_t row = 0; row < rows; ++row) {
      const double* c = block.c(row);
      for (std::int64_t column = 0; column < width; ++column) store(row, first + column, c[column]);
    }
  }
}

}  // namespace convoy::reference
