// Each instruction of kernels/cuda/ptx.h by its tiny kernel: random bits where it moves or rounds,
// integers where it multiplies, against the layouts that the PTX ISA documents, written down here
// once more, element by element.
#include "kernels/cuda/conformance.h"

#include <bit>
#include <cmath>
#include <functional>

#include "kernels/base/bf16.h"
#include "kernels/base/context.h"
#include "kernels/base/philox.h"
#include "tests/kernels/cuda/gpu_name.h"
#include "tests/support/catch.h"

namespace convoy::testing {
namespace {

using CONVOY_GPU::PtxWrapper;
using Words = std::vector<std::uint32_t>;

Words random_words(int count) {
  Words words;
  for (std::uint32_t i = 0; std::ssize(words) < count; ++i) {
    for (const std::uint32_t word : philox({i, 0, 0, 0}, {5, 6})) words.push_back(word);
  }
  words.resize(count);
  return words;
}

Words run(PtxWrapper wrapper, const Words& in) {
  DeviceContext& gpu = context(kGpuName);
  Stream& stream = gpu.default_stream();
  const CONVOY_GPU::ConformanceSizes sizes = CONVOY_GPU::conformance_sizes(wrapper);
  REQUIRE(std::ssize(in) == sizes.in);
  Words out(sizes.out);
  const auto from = gpu.memory().allocate(in.size() * 4, &stream);
  const auto to = gpu.memory().allocate(out.size() * 4, &stream);
  gpu.copy_in(stream, from.data(), in.data(), in.size() * 4);
  run_conformance(stream, wrapper, {from.data()}, {to.data()});
  gpu.copy_out(stream, out.data(), to.data(), out.size() * 4);
  return out;
}

int input_words(PtxWrapper wrapper) {
  return CONVOY_GPU::conformance_sizes(wrapper).in;
}

void check_copy(PtxWrapper wrapper, int words) {
  const Words in = random_words(input_words(wrapper));
  Words expected;
  for (int i = 0; i < 32 * words; ++i) expected.push_back(i / words % 3 == 0 ? 0 : in[i]);
  for (int lane = 0; lane < 16; ++lane) expected.push_back(expected[lane * words]);
  CHECK(run(wrapper, in) == expected);
}

// Element `column` (16 bits) of row `row` of four words each.
std::uint32_t matrix_element(const Words& in, int row, int column) {
  return in[row * 4 + column / 2] >> 16 * (column % 2) & 0xffff;
}

// "Each thread receives fragment (row i / 4, columns 2 (i % 4) and the next)" of the matrix whose
// rows the addresses of lanes 8m..8m+7 name.
void check_ldmatrix(PtxWrapper wrapper, bool transposed) {
  const Words in = random_words(input_words(wrapper));
  Words expected;
  for (int i = 0; i < 8; ++i) {
    for (int lane = 0; lane < 32; ++lane) {
      std::uint32_t pair[2];
      for (int e = 0; e < 2; ++e) {
        int row = lane / 4, column = 2 * (lane % 4) + e;
        if (transposed) std::swap(row, column);
        pair[e] = matrix_element(in, CONVOY_GPU::ldmatrix_row(i / 4, i % 4 * 8 + row), column);
      }
      expected.push_back(pair[0] + (pair[1] << 16));
    }
  }
  CHECK(run(wrapper, in) == expected);
}

// Which hardware has run the kernels; none yet, so that models and formulas may share a mistake.
// To be replaced by the device's name and the date of the run.
constexpr const char* kRanOnHardware = nullptr;

// The documented places of operands of one mma.m16n8kK: element i of a lane.
struct Place {
  int row, column;
};
struct Layouts {
  int k;         // of the instruction
  int per_word;  // elements of a register
  Place (*a)(int group, int thread, int i);
  Place (*b)(int group, int thread, int i);  // row: k, column: n
};

constexpr Layouts kBf16 = {
    16, 2,
    [](int group, int thread, int i) {
      return Place{i < 2 || (4 <= i && i < 6) ? group : group + 8,
                   i < 4 ? thread * 2 + (i & 1) : thread * 2 + (i & 1) + 8};
    },
    [](int group, int thread, int i) {
      return Place{i < 2 ? thread * 2 + (i & 1) : thread * 2 + (i & 1) + 8, group};
    }};
constexpr Layouts kTf32 = {
    8, 1,
    [](int group, int thread, int i) {
      return Place{i == 0 || i == 2 ? group : group + 8, i == 0 || i == 1 ? thread : thread + 4};
    },
    [](int group, int thread, int i) {
      return Place{i == 0 ? thread : thread + 4, group};
    }};
Place accumulator(int group, int thread, int i) {
  return {i < 2 ? group : group + 8, thread * 2 + (i & 1)};
}

int small(std::uint32_t word) {
  return static_cast<int>(word % 9) - 4;
}

std::uint32_t element_bits(int value, int per_word) {
  const auto number = static_cast<float>(value);
  return per_word == 2 ? Bf16(number).bits : std::bit_cast<std::uint32_t>(number);
}

// A product of 32 x 32 by single instructions of 16 x 8, on integers.
class Product {
 public:
  explicit Product(const Layouts& layouts) : layouts_(layouts) {
    const Words random = random_words(2 * 32 * 16 + 32 * 32);
    for (int i = 0; i < 32 * 16; ++i) {
      a_[i / 16][i % 16] = small(random[2 * i]);
      b_[i / 16][i % 16] = small(random[2 * i + 1]);
    }
    for (int i = 0; i < 32 * 32; ++i) d_[i / 32][i % 32] = small(random[1024 + i]);
  }

  Words in() const {
    Words words = accumulators([&](int row, int column) { return d_[row][column]; });
    for (int i = 0; i < 16; ++i) {
      for (int lane = 0; lane < 32; ++lane) {
        words.push_back(i < 8 ? a_word(i / 4, i % 4, lane) : b_word(i / 4 - 2, i % 4, lane));
      }
    }
    return words;
  }

  Words expected() const {
    return accumulators([&](int row, int column) {
      int sum = d_[row][column];
      for (int k = 0; k < layouts_.k; ++k) sum += a_[row][k] * b_[column][k];
      return sum;
    });
  }

 private:
  template <class Value>
  static Words accumulators(Value value) {
    Words words;
    for (int i = 0; i < 32; ++i) {
      for (int lane = 0; lane < 32; ++lane) {
        const Place at = accumulator(lane / 4, lane % 4, i % 4);
        const auto number =
            static_cast<float>(value(i / 16 * 16 + at.row, i / 4 % 4 * 8 + at.column));
        words.push_back(std::bit_cast<std::uint32_t>(number));
      }
    }
    return words;
  }

  std::uint32_t a_word(int block, int word, int lane) const {
    std::uint32_t bits = 0;
    for (int e = 0; e < layouts_.per_word; ++e) {
      const Place at = layouts_.a(lane / 4, lane % 4, word * layouts_.per_word + e);
      bits |= element_bits(a_[block * 16 + at.row][at.column], layouts_.per_word) << 16 * e;
    }
    return bits;
  }

  // Registers 0 and 2 are B of the first 8 columns, 1 and 3 of the next.
  std::uint32_t b_word(int block, int word, int lane) const {
    std::uint32_t bits = 0;
    for (int e = 0; e < layouts_.per_word; ++e) {
      const Place at = layouts_.b(lane / 4, lane % 4, word / 2 * layouts_.per_word + e);
      const int column = block * 16 + word % 2 * 8 + at.column;
      bits |= element_bits(b_[column][at.row], layouts_.per_word) << 16 * e;
    }
    return bits;
  }

  Layouts layouts_;
  int a_[32][16], b_[32][16], d_[32][32];
};

// By division into 2^13 units in the last place, in exact arithmetic.
std::uint32_t nearest_tf32(std::uint32_t bits) {
  const std::uint32_t sign = bits & 0x80000000u, rest = bits & 0x7fffffffu;
  const double steps = std::floor(rest / 8192.0 + 0.5);
  return sign | static_cast<std::uint32_t>(steps) << 13;
}

}  // namespace

TEST_CASE("instructions that never ran on hardware are named", "[ptx]") {
  if (kRanOnHardware == nullptr) {
    WARN(
        "never ran on hardware: cp.async (16, 8, 4 bytes), ldmatrix (.x4, .x4.trans), "
        "cvt.rna.tf32, mma.m16n8k16 bf16, mma.m16n8k8 tf32");
  }
}

TEST_CASE("cp.async copies, or fills with zeros, what it is told to", "[ptx]") {
  check_copy(PtxWrapper::copy_16, 4);
  check_copy(PtxWrapper::copy_8, 2);
  check_copy(PtxWrapper::copy_4, 1);
}

TEST_CASE("ldmatrix hands out rows, or columns, as documented", "[ptx]") {
  check_ldmatrix(PtxWrapper::ldmatrix, false);
  check_ldmatrix(PtxWrapper::ldmatrix_transposed, true);
}

TEST_CASE("mma multiplies fragments as documented", "[ptx]") {
  const Product bf16(kBf16), tf32(kTf32);
  CHECK(run(PtxWrapper::mma_bf16, bf16.in()) == bf16.expected());
  CHECK(run(PtxWrapper::mma_tf32, tf32.in()) == tf32.expected());
}

TEST_CASE("f32 becomes tf32 by rounding to nearest, ties away from zero", "[ptx]") {
  Words in = random_words(input_words(PtxWrapper::to_tf32));
  // Ties, the largest number, a denormal, zeros, infinities.
  const Words special = {0x3f801000, 0xbf801000, 0x3f803000, 0x3f800fff, 0x7f7fffff, 0x00001000,
                         0x00000fff, 0x80000000, 0x00000000, 0x7f800000, 0xff800000};
  std::copy(special.begin(), special.end(), in.begin());
  Words expected;
  for (std::uint32_t& word : in) {
    if ((word & 0x7f800000) == 0x7f800000) word &= 0xff800000;  // a NaN's bits are hardware's own
    expected.push_back(nearest_tf32(word));
  }
  CHECK(run(PtxWrapper::to_tf32, in) == expected);
  in.assign(in.size(), 0x7f800001);
  for (const std::uint32_t word : run(PtxWrapper::to_tf32, in)) {
    CHECK(std::isnan(std::bit_cast<float>(word)));
  }
}

}  // namespace convoy::testing
