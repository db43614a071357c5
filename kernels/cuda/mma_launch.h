// Launches of the product kernel, and loaders' parameters from the description of a convolution.
#pragma once

#include "kernels/cuda/gpu_stream.h"
#include "kernels/cuda/mma.h"
#include "kernels/cuda/mma_gemm.h"

namespace convoy::CONVOY_GPU {

/// `step` values further in K, which runs through (tap row, tap column, channel) of `gather`.
inline Digits step_of(const Gather& gather, int step) {
  return digits_of(step, gather.taps_w, gather.channels);
}

/// Rows that gather from `data` (of `images`), as `gather` says.
template <class T, int Piece>
typename TapRows<T, Piece>::Params tap_rows(const Gather& g, int images, ConstBuffer data) {
  return {data.as<T>(), images,     g.source_h,     g.source_w,     g.channels,
          g.places_h,   g.places_w, g.place_step_h, g.place_step_w, g.origin_h,
          g.origin_w,   g.taps_h,   g.taps_w,       g.tap_step_h,   step_of(g, kMmaDepth<T>)};
}

/// A launch over tiles of m x n, `parts` of them in z.
template <class Tile>
LaunchConfig mma_config(std::int64_t m, std::int64_t n, int parts, Stream& stream) {
  const std::int64_t tiles = (m + Tile::kM - 1) / Tile::kM * ((n + Tile::kN - 1) / Tile::kN);
  return {.grid = {static_cast<unsigned>(tiles), 1, static_cast<unsigned>(parts)},
          .block = {Tile::kThreads},
          .shared_bytes = sizeof(MmaStorage<Tile>),
          .stream = handle(stream)};
}

/// Calls use(Tile()).
template <class Use>
void with_tiles(MmaTiles tiles, Use use) {
  switch (tiles) {
    case MmaTiles::k128x128:
      return use(MmaTile128x128());
    case MmaTiles::k128x64:
      return use(MmaTile128x64());
    case MmaTiles::k64x64:
      return use(MmaTile64x64());
  }
}

/// Computes one product as a whole.
template <class T, class A, class B, class Out>
void launch_mma(Stream& stream, MmaTiles tiles, const MmaProblem<A, B, Out>& problem) {
  const MmaArguments<A, B, Out, 1> arguments = {{problem}};
  with_tiles(tiles, [&]<class Tile>(Tile) {
    launch(mma_kernel<T, Tile, A, B, Out, 1>, mma_config<Tile>(problem.m, problem.n, 1, stream),
           arguments);
  });
}

}  // namespace convoy::CONVOY_GPU
