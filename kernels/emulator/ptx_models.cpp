#include "kernels/emulator/ptx_models.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "kernels/emulator/warp.h"

namespace convoy::emulator::machine {
namespace {

constexpr int kLanes = kWarpSize;
constexpr int kBlock = 16;       // rows and columns of a block of the product
constexpr int kMaxColumns = 64;  // of a warp's tile

float bf16_value(std::uint32_t bits) {
  return std::bit_cast<float>(bits << 16);
}

float tf32_value(std::uint32_t bits) {
  return std::bit_cast<float>(tf32_model(bits));
}

// Stores what a lane holds of a 16 x (32 bytes) fragment: element (row, k) goes to to[row *
// row_step
// + k * k_step].
template <int Depth>
void unpack(const std::uint32_t* registers, int lane, int row_step, int k_step, float* to) {
  for (int i = 0; i < 4; ++i) {
    const int row = lane / 4 + 8 * (i % 2);
    if constexpr (Depth == 16) {
      const int k = lane % 4 * 2 + 8 * (i / 2);
      to[row * row_step + k * k_step] = bf16_value(registers[i] & 0xffff);
      to[row * row_step + (k + 1) * k_step] = bf16_value(registers[i] >> 16);
    } else {
      const int k = lane % 4 + 4 * (i / 2);
      to[row * row_step + k * k_step] = tf32_value(registers[i]);
    }
  }
}

// Calls visit(row, column, accumulator) for a row of blocks of a lane; accumulators of two
// neighbouring columns come together.
template <class Visit>
void for_each_pair(int lane, int columns, float* d, Visit visit) {
  for (int half = 0; half < 2 * columns; ++half) {
    for (int i = 0; i < 2; ++i) {
      visit(lane / 4 + 8 * i, 8 * half + lane % 4 * 2, d + half * 4 + 2 * i);
    }
  }
}

// c += a b for one row of blocks.
template <int Depth>
void multiply(const float (&a)[kBlock][Depth], const float (&b)[Depth][kMaxColumns],
              float (&c)[kBlock][kMaxColumns], int columns) {
  for (int row = 0; row < kBlock; ++row) {
    for (int first = 0; first < columns; first += kBlock) {
      float sums[kBlock];
      memcpy(sums, c[row] + first, sizeof sums);
      for (int k = 0; k < Depth; ++k) {
        for (int j = 0; j < kBlock; ++j) sums[j] += a[row][k] * b[k][first + j];
      }
      memcpy(c[row] + first, sums, sizeof sums);
    }
  }
}

template <int Depth>
void mma_model(int rows, int columns, const std::array<MmaLane, kWarpSize>& warp) {
  float a[kBlock][Depth], b[Depth][kMaxColumns], c[kBlock][kMaxColumns];
  for (int j = 0; j < columns; ++j) {
    for (int lane = 0; lane < kLanes; ++lane) {
      unpack<Depth>(warp[lane].b + 4 * j, lane, 1, kMaxColumns, b[0] + kBlock * j);
    }
  }
  for (int i = 0; i < rows; ++i) {
    for (int lane = 0; lane < kLanes; ++lane) {
      unpack<Depth>(warp[lane].a + 4 * i, lane, Depth, 1, a[0]);
      for_each_pair(lane, columns, warp[lane].d + i * columns * 8,
                    [&](int row, int column, const float* d) {
                      memcpy(c[row] + column, d, 2 * sizeof(float));
                    });
    }
    multiply<Depth>(a, b, c, kBlock * columns);
    for (int lane = 0; lane < kLanes; ++lane) {
      for_each_pair(
          lane, columns, warp[lane].d + i * columns * 8,
          [&](int row, int column, float* d) { memcpy(d, c[row] + column, 2 * sizeof(float)); });
    }
  }
}

std::uint16_t element(const void* row, int i) {
  std::uint16_t value;
  memcpy(&value, static_cast<const std::byte*>(row) + 2 * i, sizeof value);
  return value;
}

}  // namespace

void ldmatrix_model(int count, bool transposed, const std::array<LdmatrixLane, kWarpSize>& warp) {
  for (int i = 0; i < count; ++i) {
    for (int lane = 0; lane < kLanes; ++lane) {
      for (int matrix = 0; matrix < 4; ++matrix) {
        std::uint32_t pair[2];
        for (int e = 0; e < 2; ++e) {
          const int row = transposed ? lane % 4 * 2 + e : lane / 4;
          const int column = transposed ? lane / 4 : lane % 4 * 2 + e;
          pair[e] = element(warp[8 * matrix + row].rows[i], column);
        }
        warp[lane].to[4 * i + matrix] = pair[0] | pair[1] << 16;
      }
    }
  }
}

void mma_bf16_model(int rows, int columns, const std::array<MmaLane, kWarpSize>& warp) {
  mma_model<16>(rows, columns, warp);
}

void mma_tf32_model(int rows, int columns, const std::array<MmaLane, kWarpSize>& warp) {
  mma_model<8>(rows, columns, warp);
}

std::uint32_t tf32_model(std::uint32_t value) {
  constexpr std::uint32_t kKept = 0xffffe000u, kExponent = 0x7f800000u;
  if ((value & kExponent) == kExponent) {
    return (value & 0x007fffffu) != 0 ? 0x7fffe000u : value;  // NaN, infinity
  }
  return (value + 0x1000u) & kKept;
}

namespace {

// Runs finish(warp) once, with what all lanes of the warp brought.
template <class Lane, class Finish>
void meet(const char* what, const Site& site, Lane lane, const Finish& finish) {
  collective(what, kAllLanes, site, lane, [&](Lanes<Lane> lanes) {
    std::array<Lane, kWarpSize> warp;
    lanes.each([&](unsigned i, const Lane& mine) { warp[i] = mine; });
    finish(warp);
  });
}

void check_row(const void* row, const Site& site, const void* code) {
  if (reinterpret_cast<std::uintptr_t>(row) % 16 != 0) {
    fault(cudaErrorMisalignedAddress,
          fmt::format("ldmatrix at {}: row {} is not aligned to 16 bytes", describe(site), row));
  }
  checks::read(row, 16, code);
}

}  // namespace

void ldmatrix_x4(int count, bool transposed, std::uint32_t* to, const void* const* rows,
                 const Site& site) {
  for (int i = 0; i < count; ++i) check_row(rows[i], site, __builtin_return_address(0));
  meet("ldmatrix", site, LdmatrixLane{rows, to},
       [&](const auto& warp) { ldmatrix_model(count, transposed, warp); });
}

void mma_bf16(int rows, int columns, float* d, const std::uint32_t* a, const std::uint32_t* b,
              const Site& site) {
  meet("mma.m16n8k16", site, MmaLane{d, a, b},
       [&](const auto& warp) { mma_bf16_model(rows, columns, warp); });
}

void mma_tf32(int rows, int columns, float* d, const std::uint32_t* a, const std::uint32_t* b,
              const Site& site) {
  meet("mma.m16n8k8", site, MmaLane{d, a, b},
       [&](const auto& warp) { mma_tf32_model(rows, columns, warp); });
}

}  // namespace convoy::emulator::machine
