#include "kernels/cuda/filter_rows.h"

#include "kernels/base/bf16.h"
#include "kernels/cuda/gpu_stream.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/vector.h"

namespace convoy::CONVOY_GPU {
namespace {

constexpr int kThreads = 128;

// A thread for each tap of the result: its 4 channels.
template <class T>
__global__ void __launch_bounds__(kThreads)
    pad_filter_rows_kernel(FilterRows rows, unsigned taps, const T* w, T* padded) {
  const unsigned to = blockIdx.x * kThreads + threadIdx.x;
  if (to >= taps) return;
  const unsigned row = to / rows.padded, tap = to - row * rows.padded - rows.lead;
  Vector<T, 4> channels = {};
  if (tap < static_cast<unsigned>(rows.taps)) {
    channels = load_vector<4>(w + (std::int64_t{row} * rows.taps + tap) * 4);
  }
  store_vector(padded + std::int64_t{to} * 4, channels);
}

template <class T>
ConstBuffer pad(Stream& stream, const FilterRows& rows, unsigned taps, ConstBuffer w) {
  T* const padded = static_cast<T*>(stream.scratch(std::size_t{taps} * 4 * sizeof(T)));
  const LaunchConfig config = {.grid = dim3((taps + kThreads - 1) / kThreads),
                               .block = dim3(kThreads),
                               .shared_bytes = 0,
                               .stream = handle(stream)};
  launch(pad_filter_rows_kernel<T>, config, rows, taps, w.as<T>(), padded);
  return {padded, w.dtype, w.layout};
}

}  // namespace

ConstBuffer padded_filters(Stream& stream, const ConvProblem& problem, const FilterRows& rows,
                           ConstBuffer w) {
  const auto taps = static_cast<unsigned>(problem.k * problem.r * rows.padded);
  if (w.dtype == DType::bf16) return pad<Bf16>(stream, rows, taps, w);
  return pad<float>(stream, rows, taps, w);
}

}  // namespace convoy::CONVOY_GPU
