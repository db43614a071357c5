// Changes of layout. Between plain and channels last each image is a transpose of (channels,
// pixels), tile by tile through shared memory, so that both sides are read and written in rows.
// Padded channels are written as zeros.
#include "kernels/cuda/check.h"
#include "kernels/cuda/gpu_stream.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/layout.h"
#include "kernels/cuda/operands.h"
#include "kernels/cuda/pack.h"
#include "kernels/cuda/shared.h"

namespace convoy::CONVOY_GPU {
namespace {

constexpr int kTile = 32;
constexpr int kTileRows = 8;  // of threads; each handles kTile / kTileRows rows of the tile

// A matrix (rows, columns) of `batch` whose rows are `pitch` elements apart; what lies behind the
// columns of a row is padding.
struct Side {
  std::int64_t rows, columns, pitch;
};

// x (channels, pixels) to y (pixels, channels) or the reverse: y's columns are x's rows.
struct Transpose {
  std::int64_t batch;
  Side x, y;
  std::int64_t tiles_down, tiles_across;  // of y, padding included
};

// Elements of less than four bytes lie in a word each: no two rows of a column share a bank.
template <class T>
struct TileMemory {
  using Cell = std::conditional_t<(sizeof(T) < 4), std::uint32_t, T>;
  Cell cells[kTile][kTile + 1];
};

template <class T>
__global__ void __launch_bounds__(kTile* kTileRows)
    transpose_kernel(Transpose shape, const T* x, T* y) {
  auto& memory = smem<TileMemory<T>>();
  std::int64_t tile = blockIdx.x;
  const std::int64_t column = tile % shape.tiles_across * kTile;  // of y, row of x
  tile /= shape.tiles_across;
  const std::int64_t row = tile % shape.tiles_down * kTile;  // of y, column of x
  const std::int64_t image = tile / shape.tiles_down;
  const int lane = threadIdx.x % kTile, first = threadIdx.x / kTile;
  x += image * shape.x.rows * shape.x.pitch;
  y += image * shape.y.rows * shape.y.pitch;
  for (int i = first; i < kTile; i += kTileRows) {
    const bool inside = column + i < shape.x.rows && row + lane < shape.x.columns;
    memory.cells[i][lane] = inside ? x[(column + i) * shape.x.pitch + row + lane] : T(0);
  }
  __syncthreads();
  for (int i = first; i < kTile; i += kTileRows) {
    if (row + i < shape.y.rows && column + lane < shape.y.pitch) {
      y[(row + i) * shape.y.pitch + column + lane] = static_cast<T>(memory.cells[lane][i]);
    }
  }
}

// Images of at most four channels to pixels of four: reads run along the planes, and each pixel is
// one store.
template <class T>
__global__ void __launch_bounds__(kElementwiseThreads)
    pixels_kernel(std::int64_t images, std::int64_t channels, std::int64_t pixels, const T* x,
                  T* y) {
  const std::int64_t threads = std::int64_t(gridDim.x) * blockDim.x;
  std::int64_t i = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  for (; i < images * pixels; i += threads) {
    const T* plane = x + i / pixels * channels * pixels + i % pixels;
    constexpr int kPerStore = sizeof(T) == 8 ? 2 : 4;
    CONVOY_UNROLL
    for (int part = 0; part < 4; part += kPerStore) {
      Vector<T, kPerStore> pixel;
      CONVOY_UNROLL
      for (int c = 0; c < kPerStore; ++c) {
        pixel[c] = part + c < channels ? plane[(part + c) * pixels] : T(0);
      }
      store_vector(y + i * 4 + part, pixel);
    }
  }
}

// The same rows with another pitch.
template <class T>
__global__ void __launch_bounds__(kElementwiseThreads)
    repitch_kernel(std::int64_t rows, std::int64_t columns, std::int64_t x_pitch,
                   std::int64_t y_pitch, const T* x, T* y) {
  const std::int64_t threads = std::int64_t(gridDim.x) * blockDim.x;
  std::int64_t i = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  for (; i < rows * y_pitch; i += threads) {
    const std::int64_t row = i / y_pitch, column = i % y_pitch;
    y[i] = column < columns ? x[row * x_pitch + column] : T(0);
  }
}

LaunchConfig each_element(std::int64_t count, Stream& stream) {
  return elementwise_config({count, 0}, 1, handle(stream));
}

template <class T>
void transpose(Stream& stream, const Shape& shape, ConstBuffer x, Buffer y) {
  const std::int64_t pixels = shape[2] * shape[3];
  const Side plain{shape[1], pixels, pixels};
  const bool to_plain = y.layout == kPlain;
  const LayoutId other = to_plain ? x.layout : y.layout;
  const Side last{pixels, shape[1], stored_channels(other, shape[1])};
  Transpose how{shape[0], to_plain ? last : plain, to_plain ? plain : last, 0, 0};
  how.tiles_down = (how.y.rows + kTile - 1) / kTile;
  how.tiles_across = (how.y.pitch + kTile - 1) / kTile;
  const std::int64_t blocks = how.batch * how.tiles_down * how.tiles_across;
  launch(transpose_kernel<T>,
         {.grid = {static_cast<unsigned>(blocks)},
          .block = {kTile * kTileRows},
          .shared_bytes = sizeof(TileMemory<T>),
          .stream = handle(stream)},
         how, x.as<T>(), y.as<T>());
}

template <class T>
void queue(Stream& stream, const Shape& shape, ConstBuffer x, Buffer y) {
  const std::int64_t pixels = shape[2] * shape[3];
  if (x.layout != kPlain && y.layout != kPlain) {
    const std::int64_t rows = shape[0] * pixels, pitch = stored_channels(y.layout, shape[1]);
    launch(repitch_kernel<T>, each_element(rows * pitch, stream), rows, shape[1],
           stored_channels(x.layout, shape[1]), pitch, x.as<T>(), y.as<T>());
  } else if (y.layout == kChannelsLast4 && shape[1] <= 4 && is_aligned(y.data, 16)) {
    launch(pixels_kernel<T>, each_element(shape[0] * pixels, stream), shape[0], shape[1], pixels,
           x.as<T>(), y.as<T>());
  } else {
    transpose<T>(stream, shape, x, y);
  }
}

}  // namespace

void reorder(Stream& stream, const Shape& shape, ConstBuffer x, Buffer y) {
  check_same_dtype("reorder", {x, y});
  const std::size_t bytes = layout_bytes(x.layout, shape, x.dtype);
  layout_bytes(y.layout, shape, y.dtype);
  if (shape.count() == 0) return;
  if (x.layout == y.layout) {
    check(cudaMemcpyAsync(y.data, x.data, bytes, cudaMemcpyDeviceToDevice, handle(stream)));
    return;
  }
  switch (size_of(x.dtype)) {
    case 1:
      return queue<std::uint8_t>(stream, shape, x, y);
    case 2:
      return queue<std::uint16_t>(stream, shape, x, y);
    case 4:
      return queue<std::uint32_t>(stream, shape, x, y);
    default:
      return queue<std::uint64_t>(stream, shape, x, y);
  }
}

}  // namespace convoy::CONVOY_GPU
