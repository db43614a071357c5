// The loops of vector/winograd*.cpp over blocks of tiles. Small products keep the blocks in a
// core's own cache, one block a thread; large ones share each block among the threads, step after
// step. Neither changes a sum: it runs over all inputs, or over fixed ranges of tiles.
#include "kernels/cpu/winograd.h"

#include <algorithm>

#include "kernels/base/context.h"
#include "kernels/base/error.h"
#include "kernels/base/host_stream.h"
#include "kernels/cpu/staging.h"
#include "kernels/cpu/values.h"

namespace convoy::cpu {
namespace {

// Work that is worth other threads, whatever the number of its calls.
constexpr std::int64_t kMuch = kSerialElements + 1;

// Odd numbers of lines between points, or they would fall into the same sets of a cache.
std::int64_t apart(std::int64_t floats) {
  return floats + 16;
}

std::int64_t split_up(std::int64_t count, std::int64_t part) {
  return (count + part - 1) / part;
}

/// Sizes of a call, from `inputs` to `outputs` channels, which come in groups: their transformed
/// weights take memory, and stay in caches where they are few.
struct Plan {
  Plan(const Conv2dShape& s, ConvPass pass, int lanes_, int threads)
      : lanes(lanes_),
        h(s.h),
        w(s.w),
        inputs(pass == ConvPass::input_gradient ? s.k : s.c),
        outputs(pass == ConvPass::input_gradient ? s.c : s.k),
        group(std::min(outputs,
                       std::max(kGroup / inputs / (2 * lanes), std::int64_t{1}) * 2 * lanes)),
        total(s.n * split_up(h, kWinogradOut) * split_up(w, kWinogradOut)),
        shared(inputs * outputs >= kGroup) {
    const std::int64_t most = shared ? 256 : lanes == 16 ? 56 : 24;
    blocks = split_up(total, most);
    parts = static_cast<int>(shared ? 1 : std::min<std::int64_t>(blocks, kParts));
    const std::int64_t tasks = pass == ConvPass::weight_gradient ? parts : blocks;
    workers = static_cast<int>(shared ? 1 : std::min<std::int64_t>(threads, tasks));
    const std::int64_t largest = split_up(total, blocks);
    tile_floats = apart(largest * inputs) * kWinogradPoints;
    product_floats = apart(largest * group) * kWinogradPoints;
    factor_stride = apart(inputs * group);
  }

  /// Tiles of block i.
  WinogradTiles tiles(std::int64_t i, std::int64_t channels) const {
    const std::int64_t begin = i * total / blocks;
    return {h, w, channels / lanes, begin, (i + 1) * total / blocks - begin};
  }
  std::int64_t factor_floats() const { return factor_stride * kWinogradPoints; }

  static constexpr std::int64_t kParts = 4, kGroup = 256 * 256;
  int lanes;
  std::int64_t h, w, inputs, outputs, group, total;
  bool shared;  // each block by all threads
  std::int64_t blocks = 0;
  int parts = 0, workers = 0;
  std::int64_t tile_floats = 0, product_floats = 0, factor_stride = 0;
};

/// A group of output channels.
struct Group {
  std::int64_t begin, size;
};

template <class Work>
void each_group(const Plan& p, const Work& work) {
  for (std::int64_t begin = 0; begin < p.outputs; begin += p.group) {
    work(Group{begin, std::min(p.group, p.outputs - begin)});
  }
}

// What belongs to a group, as if its channels were the first ones.
template <class T>
T* planes_of(const Plan& p, const Group& group, T* y) {
  return y + group.begin * p.h * p.w;
}

WinogradWeights weights_of(const Plan& p, const Group& group, WinogradWeights weights) {
  weights.data += group.begin / p.lanes * weights.out_block;
  return weights;
}

/// Scratch memory of a worker.
struct Space {
  Space(const Plan& p, float* all, std::int64_t worker)
      : tiles(all + worker * (p.tile_floats + p.product_floats)), products(tiles + p.tile_floats) {}
  float *tiles, *products;
};

// Work of one block: on all threads where blocks are shared, else on the caller's.
template <class Work>
void each(const Plan& p, std::int64_t count, const Work& work) {
  if (p.shared) {
    parallel_for(count, kMuch, work);
  } else {
    for (std::int64_t i = 0; i < count; ++i) work(i);
  }
}

// The tiles of a block, for each group anew unless they are all there are.
template <class X>
void to_tiles(const Plan& p, const Group& group, const WinogradTiles& g, const X* x,
              const Space& space) {
  if (group.begin > 0 && p.blocks == 1) return;
  each(p, g.blocks, [&](std::int64_t block) {
    loops_of<X>().winograd_input(g, block, x, space.tiles, apart(p.inputs * g.count));
  });
}

template <class X>
void convolve_block(const Plan& p, const Group& group, std::int64_t i, const X* x,
                    const float* factors, const Space& space, X* y) {
  const WinogradTiles in = p.tiles(i, p.inputs), out = p.tiles(i, p.outputs);
  const std::int64_t stride = apart(p.inputs * in.count), out_stride = apart(group.size * in.count);
  to_tiles(p, group, in, x, space);
  each(p, kWinogradPoints, [&](std::int64_t point) {
    loops().winograd_multiply(in.count, p.inputs, group.size, space.tiles + point * stride,
                              factors + point * p.factor_stride,
                              space.products + point * out_stride);
  });
  each(p, group.size / p.lanes, [&](std::int64_t block) {
    loops_of<X>().winograd_output(out, block, space.products, out_stride, planes_of(p, group, y));
  });
}

template <class X>
void convolve(const Plan& p, const X* x, const WinogradWeights& weights, X* y, float* scratch) {
  float* spaces = scratch + p.factor_floats();
  each_group(p, [&](const Group& group) {
    const WinogradWeights own = weights_of(p, group, weights);
    parallel_for(group.size / (2 * p.lanes), kMuch, [&](std::int64_t panel) {
      loops().winograd_weights(own, p.inputs, panel, scratch, p.factor_stride);
    });
    parallel_for(p.workers, kMuch, [&](std::int64_t worker) {
      const Space space(p, spaces, worker);
      for (std::int64_t i = worker; i < p.blocks; i += p.workers) {
        convolve_block(p, group, i, x, scratch, space, y);
      }
    });
  });
}

template <class X>
void accumulate_block(const Plan& p, const Group& group, std::int64_t i, const X* x, const X* dy,
                      const Space& space, bool add, float* sums) {
  const WinogradTiles in = p.tiles(i, p.inputs), out = p.tiles(i, p.outputs);
  const std::int64_t stride = apart(p.inputs * in.count), out_stride = apart(group.size * in.count);
  to_tiles(p, group, in, x, space);
  each(p, group.size / p.lanes, [&](std::int64_t block) {
    loops_of<X>().winograd_output_gradient(out, block, planes_of(p, group, dy), space.products,
                                           out_stride);
  });
  each(p, kWinogradPoints, [&](std::int64_t point) {
    loops().winograd_accumulate(in.count, p.inputs, group.size, space.tiles + point * stride,
                                space.products + point * out_stride, add,
                                sums + point * p.factor_stride);
  });
}

// Parts of the blocks have sums of their own, which are added in order at the end.
template <class X>
void weight_gradient(const Plan& p, const X* x, const X* dy, const WinogradWeights& weights,
                     float* scratch) {
  float* spaces = scratch + p.parts * p.factor_floats();
  each_group(p, [&](const Group& group) {
    parallel_for(p.workers, kMuch, [&](std::int64_t worker) {
      const Space space(p, spaces, worker);
      for (std::int64_t part = worker; part < p.parts; part += p.workers) {
        float* sums = scratch + part * p.factor_floats();
        const std::int64_t begin = part * p.blocks / p.parts, end = (part + 1) * p.blocks / p.parts;
        for (std::int64_t i = begin; i < end; ++i) {
          accumulate_block(p, group, i, x, dy, space, i > begin, sums);
        }
      }
    });
    const WinogradWeights own = weights_of(p, group, weights);
    parallel_for(p.inputs / p.lanes, kMuch, [&](std::int64_t block) {
      loops().winograd_weight_gradient(own, block, group.size, p.parts, p.factor_floats(), scratch,
                                       p.factor_stride);
    });
  });
}

std::size_t scratch_bytes(const Plan& p) {
  const std::int64_t floats =
      p.parts * p.factor_floats() + p.workers * (p.tile_floats + p.product_floats);
  return static_cast<std::size_t>(floats) * sizeof(float);
}

// The input gradient is the convolution of dy by the weights turned, with outputs for inputs.
WinogradWeights turned(const WinogradWeights& w) {
  return {w.data, w.out_block, w.in_block, w.tap, w.out, w.in, true};
}

const char* kernel_name(ConvPass pass) {
  return pass == ConvPass::forward          ? "conv2d_forward"
         : pass == ConvPass::input_gradient ? "conv2d_input_gradient"
                                            : "conv2d_weight_gradient";
}

Buffer writable(ConstBuffer buffer) {
  return {const_cast<void*>(buffer.data), buffer.dtype, buffer.layout};
}

}  // namespace

bool winograd_pays(const Conv2dShape& s, ConvPass, const Isa& isa) {
  const bool fits = s.r == 3 && s.s == 3 && s.stride_h == 1 && s.stride_w == 1 &&
                    s.padding_h == 1 && s.padding_w == 1 && s.dilation_h == 1 &&
                    s.dilation_w == 1 && s.groups == 1;
  // Vectors as wide as a channel block, panels of two.
  const std::int64_t panel = 2 * isa.block;
  if (!fits || !isa.wide || s.c % panel != 0 || s.k % panel != 0) return false;
  const std::int64_t down = split_up(s.h, kWinogradOut), across = split_up(s.w, kWinogradOut);
  const std::int64_t tiles = s.n * down * across;
  // Transforms take too much of the time for few channels, and those of weights for few tiles; at
  // the edges tiles compute what nobody wants.
  return std::min(s.c, s.k) >= 64 && tiles >= 32 && 9 * down * across <= s.h * s.w;
}

void submit_winograd(Stream& stream, const Conv2dShape& s, ConvPass pass, ConstBuffer x,
                     const WinogradWeights& weights, ConstBuffer y) {
  CONVOY_DCHECK(winograd_pays(s, pass, isa()), "{}: Winograd does not fit w {}", kernel_name(pass),
                to_string(s.weight()));
  const Plan p(s, pass, isa().block, context(stream.device()).threads());
  const DType type = x.dtype == y.dtype ? x.dtype : DType::f32;
  Staging staging(stream, block_layout(), {{s.x(), x}, {s.y(), y}}, scratch_bytes(p), type);
  auto* scratch = static_cast<float*>(staging.own());
  const bool to_x = pass == ConvPass::input_gradient, to_y = pass == ConvPass::forward;
  const Buffer side_x =
      to_x ? staging.output_buffer(s.x(), writable(x)) : writable(staging.input_buffer(s.x(), x));
  const Buffer side_y =
      to_y ? staging.output_buffer(s.y(), writable(y)) : writable(staging.input_buffer(s.y(), y));
  host(stream).submit(
      [=] {
        with_values(type, [&]<class X>(X) {
          if (pass == ConvPass::weight_gradient) {
            weight_gradient(p, side_x.as<const X>(), side_y.as<const X>(), weights, scratch);
          } else if (to_x) {
            convolve(p, side_y.as<const X>(), turned(weights), side_x.as<X>(), scratch);
          } else {
            convolve(p, side_x.as<const X>(), weights, side_y.as<X>(), scratch);
          }
        });
      },
      kernel_name(pass));
  staging.finish();
}

}  // namespace convoy::cpu
