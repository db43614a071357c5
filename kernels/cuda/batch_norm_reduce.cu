// The reductions of batch norm: one pass over activations, a pair of doubles per block and channel
// (a slot), then all slots of a channel. Every order of sums is fixed: a thread's positions in
// order, threads of a block in a tree, slots by 64 lanes and a tree over these.
//
// Moments are taken around a thread's own first value: with at most 64 values per thread, sums in
// float lose no more than some 64 roundings of their variance, however far the mean is from zero
// and whatever that first value is.
#include <cmath>

#include "kernels/cuda/batch_norm_device.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/shared.h"

namespace convoy::CONVOY_GPU {
namespace {

// Vectors that a thread has under way at a time; single values take more registers for their place.
template <int kWidth>
inline constexpr int kLoads = kWidth > 1 ? 4 : 2;

/// What a thread, or several, have found of kWidth channels.
template <int kWidth>
struct Pairs {
  double first[kWidth], second[kWidth];
};

/// The upper half of the threads that are left leaves its pairs here; neighbours lie side by side,
/// rows so far apart that threads which go over channels in order read from different banks.
template <int kWidth>
struct TreeStorage {
  static constexpr int kPitch =
      kBatchNormThreads / 2 + (kWidth > 1 ? 128 / (kWidth * int{sizeof(double)}) : 0);
  double first[kWidth][kPitch];
  double second[kWidth][kPitch];
};

/// Chan's formula for two sets, whose counts all channels share.
class MergeMoments {
 public:
  __device__ __forceinline__ MergeMoments(double count, double other)
      : share_(other > 0 ? other / (count + other) : 0), product_(count * share_) {}
  __device__ __forceinline__ void operator()(double& mean, double& m2, double other_mean,
                                             double other_m2) const {
    const double delta = other_mean - mean;
    mean += delta * share_;
    m2 += other_m2 + delta * delta * product_;
  }

 private:
  double share_, product_;
};

struct AddPairs {
  __device__ __forceinline__ AddPairs(double, double) {}
  __device__ __forceinline__ void operator()(double& a, double& b, double other_a,
                                             double other_b) const {
    a += other_a;
    b += other_b;
  }
};

/// How many of `count` things a row has that takes row, row + stride, ...
__device__ __forceinline__ double count_of_row(std::int64_t count, int row, int stride) {
  return row < count ? static_cast<double>((count - row + stride - 1) / stride) : 0.0;
}

/// Merges the pairs of `rows` rows of `columns` threads into those of row 0. `count_of(row,
/// stride)` is the number of values that a row stands for once only `stride` rows are left.
template <class Merge, int kWidth, class CountOf>
__device__ __forceinline__ void merge_rows(TreeStorage<kWidth>& storage, int columns, int rows,
                                           Pairs<kWidth>& own, CountOf count_of) {
  const int thread = static_cast<int>(threadIdx.x), row = thread / columns;
  constexpr int kSlots = kBatchNormThreads / 2;
  for (int half = rows / 2; half > 0; half /= 2) {
    if (row >= half && row < 2 * half) {
      CONVOY_UNROLL
      for (int i = 0; i < kWidth; ++i) {
        storage.first[i][thread % kSlots] = own.first[i];
        storage.second[i][thread % kSlots] = own.second[i];
      }
    }
    // A thread stores where it alone has read in the step before: one barrier a step is enough.
    __syncthreads();
    if (row < half) {
      const int other = (thread + half * columns) % kSlots;
      const Merge merge(count_of(row, 2 * half), count_of(row + half, 2 * half));
      CONVOY_UNROLL
      for (int i = 0; i < kWidth; ++i) {
        merge(own.first[i], own.second[i], storage.first[i][other], storage.second[i][other]);
      }
    }
  }
}

/// Writes the pairs of row 0, a channel a thread, in the order of channels.
template <int kWidth>
__device__ __forceinline__ void store_slot(TreeStorage<kWidth>& storage, const BatchNormTile& tile,
                                           const ThreadPlace<kWidth>& place, const SlotsOut& slots,
                                           const Pairs<kWidth>& pairs) {
  __syncthreads();
  if (place.row == 0) {
    CONVOY_UNROLL
    for (int i = 0; i < kWidth; ++i) {
      storage.first[i][place.column] = pairs.first[i];
      storage.second[i][place.column] = pairs.second[i];
    }
  }
  __syncthreads();
  const std::int64_t channel = channel_of_thread<kWidth>(tile);
  if (channel < 0) return;
  const int thread = static_cast<int>(threadIdx.x);
  const std::int64_t at = blockIdx.y * slots.layout.channels + channel;
  slots.first[at] = storage.first[thread % kWidth][thread / kWidth];
  slots.second[at] = storage.second[thread % kWidth][thread / kWidth];
}

/// Sums of a thread around its first value.
template <class T, int kWidth>
struct ThreadMoments {
  __device__ __forceinline__ void add(const Vector<T, kWidth>& x) {
    CONVOY_UNROLL
    for (int i = 0; i < kWidth; ++i) {
      const SumOf<T> d = static_cast<SumOf<T>>(to_math(x[i])) - static_cast<SumOf<T>>(origin[i]);
      sum[i] += d;
      squares[i] += d * d;
    }
  }
  __device__ __forceinline__ Pairs<kWidth> moments(double count) const {
    Pairs<kWidth> result;
    const double share = count > 0 ? 1 / count : 0;
    CONVOY_UNROLL
    for (int i = 0; i < kWidth; ++i) {
      const double mean = static_cast<double>(sum[i]) * share;
      const double m2 = static_cast<double>(squares[i]) - mean * static_cast<double>(sum[i]);
      result.first[i] = static_cast<double>(origin[i]) + mean;
      result.second[i] = m2 < 0 ? 0 : m2;
    }
    return result;
  }

  Math<T> origin[kWidth] = {};
  SumOf<T> sum[kWidth] = {}, squares[kWidth] = {};
};

template <class T, int kWidth>
__device__ __forceinline__ ThreadMoments<T, kWidth> thread_moments(
    const BatchNormTile& tile, const ActivationIn& x, const ThreadPlace<kWidth>& place) {
  ThreadMoments<T, kWidth> sums;
  std::int64_t at = place.begin;
  if (at < place.end) {
    const Vector<T, kWidth> first = load_at<T, kWidth>(tile, x, at, place.channel);
    CONVOY_UNROLL
    for (int i = 0; i < kWidth; ++i) sums.origin[i] = to_math(first[i]);
  }
  const std::int64_t step = tile.rows;
  for (; at + (kLoads<kWidth> - 1) * step < place.end; at += kLoads<kWidth> * step) {
    Vector<T, kWidth> loaded[kLoads<kWidth>];
    CONVOY_UNROLL
    for (int k = 0; k < kLoads<kWidth>; ++k) {
      loaded[k] = load_at<T, kWidth>(tile, x, at + k * step, place.channel);
    }
    CONVOY_UNROLL
    for (int k = 0; k < kLoads<kWidth>; ++k) sums.add(loaded[k]);
  }
  for (; at < place.end; at += step) sums.add(load_at<T, kWidth>(tile, x, at, place.channel));
  return sums;
}

template <class T, int kWidth>
__global__ void __launch_bounds__(kBatchNormThreads)
    batch_norm_moments_kernel(BatchNormTile tile, ActivationIn x, SlotsOut slots) {
  auto& storage = smem<TreeStorage<kWidth>>();
  const ThreadPlace<kWidth> place(tile);
  const std::int64_t values = place.end > place.block_begin ? place.end - place.block_begin : 0;
  auto count_of = [values](int row, int stride) { return count_of_row(values, row, stride); };
  Pairs<kWidth> pairs =
      thread_moments<T, kWidth>(tile, x, place).moments(count_of(place.row, tile.rows));
  merge_rows<MergeMoments>(storage, tile.columns, tile.rows, pairs, count_of);
  store_slot(storage, tile, place, slots, pairs);
}

/// Sums of dz and of dz * (x - centre).
template <class T, int kWidth>
struct ThreadSums {
  using Sum = SumOf<T>;
  __device__ __forceinline__ void add(const Vector<T, kWidth>& x, unsigned passing,
                                      const Vector<T, kWidth>& dy) {
    CONVOY_UNROLL
    for (int i = 0; i < kWidth; ++i) {
      const Sum dz = static_cast<Sum>(before_relu(passing, dy, i));
      const Sum d = static_cast<Sum>(to_math(x[i])) - centre[i];
      dz_sum[i] += dz;
      products[i] += dz * d;
    }
  }
  Sum centre[kWidth], dz_sum[kWidth] = {}, products[kWidth] = {};
};

template <class T, int kWidth>
__device__ __forceinline__ void thread_sums(const BatchNormTile& tile, const BatchNormIn& in,
                                            const ThreadPlace<kWidth>& place,
                                            ThreadSums<T, kWidth>& sums) {
  constexpr int kAtOnce = kLoads<kWidth> / 2;
  const std::int64_t step = tile.rows;
  std::int64_t at = place.begin;
  for (; at + (kAtOnce - 1) * step < place.end; at += kAtOnce * step) {
    Vector<T, kWidth> x[kAtOnce], dy[kAtOnce];
    unsigned passing[kAtOnce];
    CONVOY_UNROLL
    for (int k = 0; k < kAtOnce; ++k) {
      x[k] = load_at<T, kWidth>(tile, in.x, at + k * step, place.channel);
      dy[k] = load_at<T, kWidth>(tile, in.dy, at + k * step, place.channel);
      passing[k] = load_passing<T, kWidth>(tile, in, at + k * step, place.channel);
    }
    CONVOY_UNROLL
    for (int k = 0; k < kAtOnce; ++k) sums.add(x[k], passing[k], dy[k]);
  }
  for (; at < place.end; at += step) {
    sums.add(load_at<T, kWidth>(tile, in.x, at, place.channel),
             load_passing<T, kWidth>(tile, in, at, place.channel),
             load_at<T, kWidth>(tile, in.dy, at, place.channel));
  }
}

template <class T, int kWidth>
struct SumsStorage {
  TreeStorage<kWidth> tree;
  BlockChannels<SumOf<T>, kWidth> centre;
};

template <class T, int kWidth>
__global__ void __launch_bounds__(kBatchNormThreads)
    batch_norm_sums_kernel(BatchNormTile tile, BatchNormIn in, FloatOrDouble mean, SlotsOut slots) {
  auto& storage = smem<SumsStorage<T, kWidth>>();
  const ThreadPlace<kWidth> place(tile);
  const std::int64_t channel = channel_of_thread<kWidth>(tile);
  if (channel >= 0) storage.centre.at(threadIdx.x) = static_cast<SumOf<T>>(mean[channel]);
  __syncthreads();
  ThreadSums<T, kWidth> sums;
  CONVOY_UNROLL
  for (int i = 0; i < kWidth; ++i) {
    sums.centre[i] = place.begin < place.end ? storage.centre.of[i][place.column] : SumOf<T>(0);
  }
  thread_sums<T, kWidth>(tile, in, place, sums);
  Pairs<kWidth> pairs;
  CONVOY_UNROLL
  for (int i = 0; i < kWidth; ++i) {
    pairs.first[i] = sums.dz_sum[i];
    pairs.second[i] = sums.products[i];
  }
  merge_rows<AddPairs>(storage.tree, tile.columns, tile.rows, pairs, [](int, int) { return 0.0; });
  store_slot(storage.tree, tile, place, slots, pairs);
}

/// The slots of a channel: all of `full` values but the last.
struct SlotCounts {
  std::int64_t slots, full, values;
  __device__ __forceinline__ double of(std::int64_t slot) const {
    return static_cast<double>(slot < slots - 1 ? full : values - full * (slots - 1));
  }
  __device__ __forceinline__ double of_lane(int lane, int stride) const {
    if (lane >= slots) return 0;
    const std::int64_t mine = (slots - lane + stride - 1) / stride;
    const bool has_last = (slots - 1 - lane) % stride == 0;
    return static_cast<double>(has_last ? (mine - 1) * full : mine * full) +
           (has_last ? of(slots - 1) : 0);
  }
};

/// The channel that the thread helps to merge.
struct MergePlace {
  __device__ __forceinline__ explicit MergePlace(std::int64_t channels)
      : channel(static_cast<std::int64_t>(blockIdx.x) * kMergeChannels +
                threadIdx.x % kMergeChannels),
        valid(channel < channels),
        writes(valid && threadIdx.x < kMergeChannels) {}
  std::int64_t channel;
  bool valid, writes;
};

/// Merges all slots of kMergeChannels channels; the result is that of the threads of lane 0.
template <class Merge>
__device__ __forceinline__ Pairs<1> merge_slots(const SlotsOut& slots, const SlotCounts& counts,
                                                const MergePlace& place) {
  const int lane = static_cast<int>(threadIdx.x) / kMergeChannels;
  Pairs<1> pairs = {};
  double count = 0;
  for (std::int64_t slot = lane; place.valid && slot < counts.slots; slot += kMergeLanes) {
    const double here = counts.of(slot);
    const std::int64_t at = slot * slots.layout.channels + place.channel;
    Merge(count, here)(pairs.first[0], pairs.second[0], slots.first[at], slots.second[at]);
    count += here;
  }
  merge_rows<Merge>(smem<TreeStorage<1>>(), kMergeChannels, kMergeLanes, pairs,
                    [&](int row, int stride) { return counts.of_lane(row, stride); });
  return pairs;
}

__global__ void __launch_bounds__(kBatchNormThreads)
    batch_norm_merge_moments_kernel(SlotsOut slots, SlotCounts counts, double* mean, double* m2) {
  const MergePlace at(slots.layout.channels);
  const Pairs<1> moments = merge_slots<MergeMoments>(slots, counts, at);
  if (!at.writes) return;
  mean[at.channel] = moments.first[0];
  m2[at.channel] = moments.second[0];
}

__global__ void __launch_bounds__(kBatchNormThreads)
    batch_norm_add_sums_kernel(SlotsOut slots, SlotCounts counts, BackwardSums sums, double* sum_dz,
                               double* sum_dz_xhat) {
  const MergePlace at(slots.layout.channels);
  const Pairs<1> pairs = merge_slots<AddPairs>(slots, counts, at);
  if (!at.writes) return;
  const double mean = sums.statistics.mean[at.channel];
  const double rest =
      sums.centred_in_float ? mean - static_cast<double>(static_cast<float>(mean)) : 0;
  const double variance = sums.statistics.m2[at.channel] / sums.statistics.counted();
  sum_dz[at.channel] = pairs.first[0];
  sum_dz_xhat[at.channel] =
      (pairs.second[0] - rest * pairs.first[0]) / std::sqrt(variance + sums.epsilon);
}

LaunchConfig tiled(cudaStream_t stream, const BatchNormProblem& problem, std::size_t shared_bytes) {
  return {.grid = problem.grid.grid(),
          .block = dim3(kBatchNormThreads),
          .shared_bytes = shared_bytes,
          .stream = stream};
}

LaunchConfig merging(cudaStream_t stream, const SlotsOut& slots) {
  const std::int64_t blocks = (slots.layout.channels + kMergeChannels - 1) / kMergeChannels;
  return {.grid = dim3(static_cast<unsigned>(blocks)),
          .block = dim3(kBatchNormThreads),
          .shared_bytes = sizeof(TreeStorage<1>),
          .stream = stream};
}

SlotCounts counts_of(const BatchNormProblem& problem) {
  return {problem.grid.blocks_y, problem.grid.positions, problem.positions};
}

}  // namespace

void launch_statistics(cudaStream_t stream, const BatchNormProblem& problem, ActivationIn x,
                       SlotsOut slots) {
  with_width(problem.dtype, problem.width, [&]<class T, int kWidth>() {
    launch(batch_norm_moments_kernel<T, kWidth>,
           tiled(stream, problem, sizeof(TreeStorage<kWidth>)), tile_of(problem), x, slots);
  });
}

void launch_merge_moments(cudaStream_t stream, const BatchNormProblem& problem, SlotsOut slots,
                          double* mean, double* m2) {
  launch(batch_norm_merge_moments_kernel, merging(stream, slots), slots, counts_of(problem), mean,
         m2);
}

void launch_backward_sums(cudaStream_t stream, const BatchNormProblem& problem,
                          const BatchNormIn& in, const FloatOrDouble& mean, SlotsOut slots) {
  with_width(problem.dtype, problem.width, [&]<class T, int kWidth>() {
    launch(batch_norm_sums_kernel<T, kWidth>,
           tiled(stream, problem, sizeof(SumsStorage<T, kWidth>)), tile_of(problem), in, mean,
           slots);
  });
}

void launch_add_sums(cudaStream_t stream, const BatchNormProblem& problem, SlotsOut slots,
                     const BackwardSums& sums, double* sum_dz, double* sum_dz_xhat) {
  launch(batch_norm_add_sums_kernel, merging(stream, slots), slots, counts_of(problem), sums,
         sum_dz, sum_dz_xhat);
}

}  // namespace convoy::CONVOY_GPU
