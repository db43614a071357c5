// What the tensor-core instructions of sm_80 do, after the fragment layouts of the PTX ISA. The
// models are plain functions of all lanes' operands; the calls below them run one for a whole warp
// as a single meeting of its lanes. Sums run in f32 over ascending k: hardware may take another
// order and more bits, so that only integers are sure to agree.
#pragma once

#include <array>
#include <cstdint>

#include "kernels/emulator/machine.h"

namespace convoy::emulator::machine {

/// A lane's part in `count` loads ldmatrix.x4: one row address and four registers each.
struct LdmatrixLane {
  const void* const* rows;
  std::uint32_t* to;
};
void ldmatrix_model(int count, bool transposed, const std::array<LdmatrixLane, kWarpSize>& warp);

/// A lane's part in a product of `rows` x `columns` blocks of 16 x 16: d [rows][columns][2][4],
/// a [rows][4], b [columns][4], see kernels/cuda/ptx.h.
struct MmaLane {
  float* d;
  const std::uint32_t* a;
  const std::uint32_t* b;
};
void mma_bf16_model(int rows, int columns, const std::array<MmaLane, kWarpSize>& warp);
/// Rounds the operands by tf32_model() first.
void mma_tf32_model(int rows, int columns, const std::array<MmaLane, kWarpSize>& warp);

/// cvt.rna.tf32.f32 of f32 bits: to nearest, ties away from zero, lower 13 bits zero.
std::uint32_t tf32_model(std::uint32_t value);

/// The instructions, called by each lane of a full warp. ldmatrix faults on rows that are not
/// aligned to 16 bytes.
void ldmatrix_x4(int count, bool transposed, std::uint32_t* to, const void* const* rows,
                 const Site& site);
void mma_bf16(int rows, int columns, float* d, const std::uint32_t* a, const std::uint32_t* b,
              const Site& site);
void mma_tf32(int rows, int columns, float* d, const std::uint32_t* a, const std::uint32_t* b,
              const Site& site);

}  // namespace convoy::emulator::machine
