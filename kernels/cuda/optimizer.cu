// Optimizer steps over all parameters of a network in one launch; formulas stand in shapes.h. Rates
// and flags travel in the launch, as the table of parameters does: they change from step to step,
// one of them after the host has read a norm, so that a step belongs behind a graph's replay rather
// than into it.
#include <cmath>

#include "kernels/cuda/chunk_table.h"
#include "kernels/cuda/gpu_stream.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/operands.h"
#include "kernels/cuda/optimizer_checks.h"
#include "kernels/cuda/pack.h"
#include "kernels/cuda/sum_of_squares.h"

namespace convoy::CONVOY_GPU {
namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kChunk = 4096;  // values of a block, a multiple of any vector's

struct Entry {
  void* weight;
  const void* gradient;
  void* state1;         // may be null
  void* state2;         // may be null
  const double* norms;  // LARS: squares of weight and gradient; null where it does not adapt
  std::int64_t count;
  double decay;
  std::int32_t first;
  bool aligned, first_step;
};
using Table = ChunkTable<Entry, 256>;

// The values of one place, in registers.
template <class T>
struct Place {
  T w, g, state1, state2;
};

template <class T>
struct Sgd {
  using Type = T;
  double scale, lr, momentum, undampened;
  bool nesterov;
  struct Slot {
    T scale, lr, momentum, undampened, decay;
    bool nesterov, starts;
  };

  explicit Sgd(const SgdArgs& args)
      : scale(args.gradient_scale),
        lr(args.lr),
        momentum(args.momentum),
        undampened(1 - args.dampening),
        nesterov(args.nesterov) {}

  __device__ Slot slot(const Entry& entry) const {
    return {T(scale),
            T(lr),
            T(momentum),
            T(undampened),
            T(entry.decay),
            nesterov,
            !entry.state1 || entry.first_step};
  }
  __device__ static void step(const Slot& slot, Place<T>& at) {
    const T step = std::fma(slot.decay, at.w, at.g * slot.scale);
    const T v = slot.starts ? step : std::fma(slot.momentum, at.state1, slot.undampened * step);
    at.state1 = v;
    at.w = std::fma(-slot.lr, slot.nesterov ? std::fma(slot.momentum, v, step) : v, at.w);
  }
};

template <class T>
struct Lars {
  using Type = T;
  double scale, lr, momentum, trust, epsilon;
  bool nesterov;
  struct Slot {
    T scale, lr, momentum, decay, ratio;
    bool nesterov;
  };

  explicit Lars(const LarsArgs& args)
      : scale(args.gradient_scale),
        lr(args.lr),
        momentum(args.momentum),
        trust(args.trust),
        epsilon(args.epsilon),
        nesterov(args.nesterov) {}

  __device__ double ratio(const Entry& entry) const {
    if (!entry.norms) return 1;
    const double w = std::sqrt(entry.norms[0]), g = std::sqrt(entry.norms[1]) * std::abs(scale);
    return w > 0 && g > 0 ? trust * w / (g + entry.decay * w + epsilon) : 1;
  }
  __device__ Slot slot(const Entry& entry) const {
    return {T(scale), T(lr), T(momentum), T(entry.decay), T(ratio(entry)), nesterov};
  }
  __device__ static void step(const Slot& slot, Place<T>& at) {
    const T step = slot.ratio * std::fma(slot.decay, at.w, at.g * slot.scale);
    const T v = std::fma(slot.momentum, at.state1, step);
    at.state1 = v;
    at.w = std::fma(-slot.lr, slot.nesterov ? std::fma(slot.momentum, v, step) : v, at.w);
  }
};

template <class T>
struct Adamw {
  using Type = T;
  double scale, lr, beta1, beta2, epsilon, correction1, correction2;
  struct Slot {
    T scale, kept, beta1, beta2, new1, new2, epsilon, rate, root;
  };

  explicit Adamw(const AdamwArgs& args)
      : scale(args.gradient_scale),
        lr(args.lr),
        beta1(args.beta1),
        beta2(args.beta2),
        epsilon(args.epsilon),
        correction1(1 - std::pow(args.beta1, double(args.step))),
        correction2(std::sqrt(1 - std::pow(args.beta2, double(args.step)))) {}

  __device__ Slot slot(const Entry& entry) const {
    return {
        T(scale),   T(1 - lr * entry.decay), T(beta1),      T(beta2), T(1 - beta1), T(1 - beta2),
        T(epsilon), T(lr / correction1),     T(correction2)};
  }
  __device__ static void step(const Slot& slot, Place<T>& at) {
    const T g = at.g * slot.scale;
    at.state1 = std::fma(slot.beta1, at.state1, slot.new1 * g);
    at.state2 = std::fma(slot.beta2, at.state2, slot.new2 * g * g);
    const T denominator = std::sqrt(at.state2) / slot.root + slot.epsilon;
    at.w = std::fma(at.w, slot.kept, -slot.rate * at.state1 / denominator);
  }
};

template <int N, class T>
__device__ __forceinline__ Pack<T, N> load_or_zero(const T* from, std::int64_t i, bool wanted) {
  return wanted ? load_pack<N>(from + i) : Pack<T, N>{};
}

template <int N, class Update, class T = typename Update::Type>
__device__ __forceinline__ void update_pack(const Entry& entry, const typename Update::Slot& slot,
                                            std::int64_t i) {
  T *w = static_cast<T*>(entry.weight), *s1 = static_cast<T*>(entry.state1),
    *s2 = static_cast<T*>(entry.state2);
  auto ws = load_pack<N>(w + i);
  const auto gs = load_pack<N>(static_cast<const T*>(entry.gradient) + i);
  auto s1s = load_or_zero<N>(s1, i, s1 && !entry.first_step);
  auto s2s = load_or_zero<N>(s2, i, s2);
  CONVOY_UNROLL
  for (int lane = 0; lane < N; ++lane) {
    Place<T> at{ws[lane], gs[lane], s1s[lane], s2s[lane]};
    Update::step(slot, at);
    ws[lane] = at.w;
    s1s[lane] = at.state1;
    s2s[lane] = at.state2;
  }
  store_pack(w + i, ws);
  if (s1) store_pack(s1 + i, s1s);
  if (s2) store_pack(s2 + i, s2s);
}

template <class Update>
__global__ void __launch_bounds__(kThreads) optimizer_kernel(Table table, Update update) {
  constexpr int kN = kLanes<typename Update::Type>;
  const Entry entry = table.entries[entry_of_chunk(table, blockIdx.x)];
  const typename Update::Slot slot = update.slot(entry);
  const std::int64_t begin = (std::int64_t(blockIdx.x) - entry.first) * kChunk;
  const std::int64_t end = std::min(begin + kChunk, entry.count);
  const std::int64_t vectored = entry.aligned ? begin + (end - begin) / kN * kN : begin;
  for (std::int64_t i = begin + threadIdx.x * kN; i < vectored; i += kThreads * kN) {
    update_pack<kN, Update>(entry, slot, i);
  }
  for (std::int64_t i = vectored + threadIdx.x; i < end; i += kThreads) {
    update_pack<1, Update>(entry, slot, i);
  }
}

// `first_steps`: whether a slot's first step is one of its own kind.
Entry entry_of(const OptimizerSlot& slot, const double* norms, bool first_steps) {
  Entry entry = {};
  entry.weight = slot.weight.data;
  entry.gradient = slot.gradient.data;
  entry.state1 = slot.state1.data;
  entry.state2 = slot.state2.data;
  entry.norms = norms;
  entry.count = slot.count;
  entry.decay = slot.weight_decay;
  entry.aligned = is_aligned(slot.weight.data, 16) && is_aligned(slot.gradient.data, 16) &&
                  is_aligned(slot.state1.data, 16) && is_aligned(slot.state2.data, 16);
  entry.first_step = first_steps && slot.first;
  return entry;
}

// Updates the slots of one dtype; those without values are passed over. `norms` may be empty.
template <class Update>
void queue(Stream& stream, const std::vector<OptimizerSlot>& slots,
           const std::vector<const double*>& norms, bool first_steps, const Update& update) {
  std::vector<Entry> entries;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (slots[i].count == 0 || slots[i].weight.dtype != dtype_of<typename Update::Type>) continue;
    entries.push_back(entry_of(slots[i], norms.empty() ? nullptr : norms[i], first_steps));
  }
  auto at = [&](std::size_t i) { return entries[i]; };
  for_each_table<Table>(entries.size(), kChunk, at, [&](const Table& table, std::size_t) {
    launch(optimizer_kernel<Update>,
           {.grid = {static_cast<unsigned>(table.chunks)},
            .block = {kThreads},
            .stream = handle(stream)},
           table, update);
  });
}

// The squares of weight and gradient of each slot that adapts go into scratch memory.
std::vector<const double*> queue_norms(Stream& stream, const std::vector<OptimizerSlot>& slots) {
  std::vector<ConstBuffer> buffers;
  std::vector<std::int64_t> counts;
  for (const OptimizerSlot& slot : slots) {
    if (!slot.adapt) continue;
    buffers.insert(buffers.end(), {ConstBuffer(slot.weight), slot.gradient});
    counts.insert(counts.end(), 2, slot.count);
  }
  const std::int64_t values = std::ssize(buffers) + squares_workspace(counts);
  auto* squares = static_cast<double*>(stream.scratch(values * sizeof(double)));
  queue_sum_of_squares(stream, buffers, counts, squares, squares + buffers.size());
  std::vector<const double*> norms;
  for (const OptimizerSlot& slot : slots) {
    norms.push_back(slot.adapt ? squares : nullptr);
    if (slot.adapt) squares += 2;
  }
  return norms;
}

}  // namespace

void sgd_update(Stream& stream, const std::vector<OptimizerSlot>& slots, const SgdArgs& args) {
  check_slots("sgd_update", slots, args.momentum != 0, false);
  queue(stream, slots, {}, true, Sgd<float>(args));
  queue(stream, slots, {}, true, Sgd<double>(args));
}

void lars_update(Stream& stream, const std::vector<OptimizerSlot>& slots, const LarsArgs& args) {
  check_slots("lars_update", slots, args.momentum != 0, false);
  const std::vector<const double*> norms = queue_norms(stream, slots);
  queue(stream, slots, norms, false, Lars<float>(args));
  queue(stream, slots, norms, false, Lars<double>(args));
}

void adamw_update(Stream& stream, const std::vector<OptimizerSlot>& slots, const AdamwArgs& args) {
  check_slots("adamw_update", slots, true, true);
  queue(stream, slots, {}, false, Adamw<float>(args));
  queue(stream, slots, {}, false, Adamw<double>(args));
}

}  // namespace convoy::CONVOY_GPU
