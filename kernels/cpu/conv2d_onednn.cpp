// Convolution by oneDNN. A kernel takes its operands in any layout: it first asks for a primitive
// that works on them as they are, then for one that works on blocked activations or on whatever
// oneDNN likes, with reorders through scratch memory. The fastest kind found wins. Where Winograd's
// way pays, it takes the place of oneDNN's.
#include <algorithm>
#include <optional>
#include <string_view>

#include "kernels/base/error.h"
#include "kernels/base/host_context.h"
#include "kernels/cpu/checks.h"
#include "kernels/cpu/conv2d_onednn.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/staging.h"

namespace convoy::cpu {
namespace {

using Desc = dnnl::memory::desc;
using Dims = dnnl::memory::dims;

// A first convolution reads its few channels plain: in blocks most of the work would be padding.
constexpr std::int64_t kFewChannels = 8;

using Type = dnnl::memory::data_type;

/// Descriptors of the three tensors of a convolution.
struct Descs {
  Desc x, w, y;
};

Dims weight_dims(const Conv2dShape& s) {
  if (s.groups == 1) return {s.k, s.c, s.r, s.s};
  return {s.groups, s.k / s.groups, s.c / s.groups, s.r, s.s};
}

Desc any_desc(const Dims& dims, Type type) {
  return {dims, type, dnnl::memory::format_tag::any};
}

Desc activation_desc(const Shape& shape, LayoutId layout, Type type) {
  using Tag = dnnl::memory::format_tag;
  const Tag tag = layout == kBlock16 ? Tag::nChw16c : layout == kBlock8 ? Tag::nChw8c : Tag::nchw;
  return {shape.extents(), type, tag};
}

Desc weight_desc_of(const Conv2dShape& s, LayoutId layout) {
  if (layout == kPlain) return plain_desc(weight_dims(s));
  Desc desc = weight_desc(layout);
  CONVOY_DCHECK(desc.get_dims() == weight_dims(s), "conv2d: weight layout {} is not for {}", layout,
                to_string(s.weight()));
  return desc;
}

/// What the desc constructors of oneDNN take, in its own terms.
struct Geometry {
  explicit Geometry(const Conv2dShape& s)
      : strides{s.stride_h, s.stride_w},
        dilates{s.dilation_h - 1, s.dilation_w - 1},
        padding{s.padding_h, s.padding_w} {}
  Dims strides, dilates, padding;
};

constexpr auto kDirect = dnnl::algorithm::convolution_direct;

dnnl::convolution_forward::primitive_desc forward_desc(const Conv2dShape& s, const Descs& d,
                                                       const Desc& bias) {
  const Geometry g(s);
  return {engine(),  dnnl::prop_kind::forward_training,
          kDirect,   d.x,
          d.w,       bias,
          d.y,       g.strides,
          g.dilates, g.padding,
          g.padding, attributes(),
          true};
}

dnnl::convolution_forward::primitive_desc forward_hint(const Conv2dShape& s, Type type) {
  return forward_desc(s,
                      {any_desc(s.x().extents(), type), any_desc(weight_dims(s), type),
                       any_desc(s.y().extents(), type)},
                      {});
}

dnnl::convolution_backward_data::primitive_desc input_gradient_desc(const Conv2dShape& s,
                                                                    const Descs& d) {
  const Geometry g(s);
  return {engine(),     kDirect,   d.x,       d.w,       d.y,
          g.strides,    g.dilates, g.padding, g.padding, forward_hint(s, d.x.get_data_type()),
          attributes(), true};
}

dnnl::convolution_backward_weights::primitive_desc weight_gradient_desc(const Conv2dShape& s,
                                                                        const Descs& d,
                                                                        const Desc& bias) {
  const Geometry g(s);
  return {engine(),
          kDirect,
          d.x,
          d.w,
          bias,
          d.y,
          g.strides,
          g.dilates,
          g.padding,
          g.padding,
          forward_hint(s, d.x.get_data_type()),
          attributes(),
          true};
}

/// 2: generated for this machine; 1: through a matrix product; 0: plain loops; -1: none.
int rank_of(const dnnl::primitive_desc_base& desc) {
  if (!desc) return -1;
  const std::string info = desc.impl_info_str();
  if (info.starts_with("jit") || info.starts_with("brg")) return 2;
  return info.find("gemm") != std::string::npos ? 1 : 0;
}

/// The layouts to try, from "as they are" to "as you like"; the other way round for tiles of AMX,
/// which want layouts of their own. Weights that are read are of the type of x and y, their
/// gradient is of floats.
std::vector<Descs> candidates(const ConvJob& job, const Descs& given) {
  const Conv2dShape& s = job.shape;
  const Type type = given.x.get_data_type();
  const bool sums = job.pass == ConvPass::weight_gradient;
  const Desc any_weight = any_desc(weight_dims(s), sums ? Type::f32 : type);
  auto blocked = [type](const Shape& shape, LayoutId layout) {
    const bool few = shape[1] < kFewChannels;
    return activation_desc(shape, layout != kPlain || few ? layout : block_layout(), type);
  };
  std::vector<Descs> all = {
      given,
      {given.x, any_weight, given.y},
      {blocked(s.x(), job.x.layout), any_weight, blocked(s.y(), job.y.layout)},
      {any_desc(s.x().extents(), type), any_weight, any_desc(s.y().extents(), type)}};
  if (type == Type::bf16 && has_tiles()) std::reverse(all.begin(), all.end());
  return all;
}

/// The best primitive of make(candidate); of equals the first.
template <class Make>
auto best_of(const char* kernel, const std::vector<Descs>& all, const Make& make) {
  auto best = make(all.front());
  for (std::size_t i = 1; i < all.size() && rank_of(best) < 2; ++i) {
    auto other = make(all[i]);
    if (rank_of(other) > rank_of(best)) best = other;
  }
  CONVOY_DCHECK(best, "{}: oneDNN has no implementation for this shape", kernel);
  return best;
}

using Job = ConvJob;

Desc bias_desc(const Job& job) {
  return job.bias ? plain_desc({job.shape.k}) : Desc();
}

void add_forward(const Job& job, const std::vector<Descs>& all, Program& program, int x, int w,
                 int b, int y) {
  auto desc = best_of(job.kernel, all,
                      [&](const Descs& d) { return forward_desc(job.shape, d, bias_desc(job)); });
  std::vector<std::pair<int, int>> arguments = {
      {DNNL_ARG_SRC, program.input_as(x, desc.src_desc())},
      {DNNL_ARG_WEIGHTS, program.input_as(w, desc.weights_desc())},
      {DNNL_ARG_DST, program.output_as(y, desc.dst_desc())}};
  if (job.bias) arguments.emplace_back(DNNL_ARG_BIAS, b);
  program.add(dnnl::convolution_forward(desc), std::move(arguments), desc.scratchpad_desc());
}

void add_input_gradient(const Job& job, const std::vector<Descs>& all, Program& program, int dx,
                        int w, int dy) {
  auto desc =
      best_of(job.kernel, all, [&](const Descs& d) { return input_gradient_desc(job.shape, d); });
  program.add(dnnl::convolution_backward_data(desc),
              {{DNNL_ARG_DIFF_DST, program.input_as(dy, desc.diff_dst_desc())},
               {DNNL_ARG_WEIGHTS, program.input_as(w, desc.weights_desc())},
               {DNNL_ARG_DIFF_SRC, program.output_as(dx, desc.diff_src_desc())}},
              desc.scratchpad_desc());
}

void add_weight_gradient(const Job& job, const std::vector<Descs>& all, Program& program, int x,
                         int dw, int db, int dy) {
  auto desc = best_of(job.kernel, all, [&](const Descs& d) {
    return weight_gradient_desc(job.shape, d, bias_desc(job));
  });
  std::vector<std::pair<int, int>> arguments = {
      {DNNL_ARG_SRC, program.input_as(x, desc.src_desc())},
      {DNNL_ARG_DIFF_DST, program.input_as(dy, desc.diff_dst_desc())},
      {DNNL_ARG_DIFF_WEIGHTS, program.output_as(dw, desc.diff_weights_desc())}};
  if (job.bias) arguments.emplace_back(DNNL_ARG_DIFF_BIAS, db);
  program.add(dnnl::convolution_backward_weights(desc), std::move(arguments),
              desc.scratchpad_desc());
}

std::shared_ptr<const Program> make_program(const Job& job, DType dtype, int threads) {
  const Conv2dShape& s = job.shape;
  const ThreadsScope scope(threads);
  const Type type = dtype == DType::bf16 ? Type::bf16 : Type::f32;
  const Descs given = {activation_desc(s.x(), job.x.layout, type), weight_desc_of(s, job.w.layout),
                       activation_desc(s.y(), job.y.layout, type)};
  const std::vector<Descs> all = candidates(job, given);
  auto program = std::make_shared<Program>();
  const int x = program->external(given.x);
  const int w = program->external(given.w);
  const int b = job.bias ? program->external(bias_desc(job)) : -1;
  const int y = program->external(given.y);
  switch (job.pass) {
    case ConvPass::forward:
      add_forward(job, all, *program, x, w, b, y);
      break;
    case ConvPass::input_gradient:
      add_input_gradient(job, all, *program, x, w, y);
      break;
    case ConvPass::weight_gradient:
      add_weight_gradient(job, all, *program, x, w, b, y);
      break;
  }
  program->finish();
  return program;
}

template <class... Rest>
Cache<std::shared_ptr<const Program>>::Key key_of(const Conv2dShape& s, Rest... rest) {
  return {s.n,         s.c,          s.h,          s.w,        s.k,
          s.r,         s.s,          s.stride_h,   s.stride_w, s.padding_h,
          s.padding_w, s.dilation_h, s.dilation_w, s.groups,   static_cast<std::int64_t>(rest)...};
}

/// The strides of weights in blocks of `block`; nothing if they are in other or smaller blocks.
std::optional<WinogradWeights> strides_of(const Desc& desc, std::int64_t block) {
  const Dims strides = desc.get_strides(), sizes = desc.get_inner_blks(),
             order = desc.get_inner_idxs();
  // Of k and c: from one block to the next, and within.
  std::int64_t outer[2] = {block * strides[0], block * strides[1]};
  std::int64_t inner[2] = {strides[0], strides[1]};
  bool seen[2] = {};
  std::int64_t inside = 1;
  for (std::size_t i = sizes.size(); i-- > 0; inside *= sizes[i]) {
    const auto dim = static_cast<std::size_t>(order[i]);
    if (dim > 1 || sizes[i] != block || seen[dim]) return {};
    seen[dim] = true;
    outer[dim] = strides[dim];
    inner[dim] = inside;
  }
  if (strides[2] != 3 * strides[3]) return {};
  return WinogradWeights{nullptr, outer[1], outer[0], strides[3], inner[1], inner[0], false};
}

/// Queues the job for our own loops, if they are faster and know the weights' layout.
bool submit_to_winograd(Stream& stream, const Job& job) {
  if (job.bias || !winograd_pays(job.shape, job.pass, isa())) return false;
  auto weights = strides_of(weight_desc_of(job.shape, job.w.layout), isa().block);
  if (!weights) return false;
  weights->data = static_cast<float*>(const_cast<void*>(job.w.data));
  submit_winograd(stream, job.shape, job.pass, job.x, *weights, job.y);
  return true;
}

void check(const Stream& stream, const Job& job) {
  require_values(job.kernel, stream, {job.x, job.w, job.bias, job.y});
  require_activation(job.kernel, {{"x", job.x}, {"y", job.y}});
  if (job.w.layout >= kFirstWeightLayout) require_f32(job.kernel, stream, {job.w});
}

/// How a pass over bf16 is computed.
enum class Way { as_floats, in_pieces, as_halves };

// Products of floats, through a core's cache, are the faster ones on CPUs whose instructions for
// bf16 make but half as many. It depends on the machine alone, so that all splits have equal bits.
Way way_of(const Job& job) {
  const bool halves = job.x.dtype == DType::bf16 && job.y.dtype == DType::bf16;
  if (!halves || job.shape.n == 0) return Way::as_floats;
  return isa().half_products || has_tiles() ? Way::as_halves : Way::in_pieces;
}

// Operands of another type than the program's go through scratch memory.
void submit_program(Stream& stream, const Job& job, DType type) {
  const Conv2dShape& s = job.shape;
  const Shape channels = {s.k};
  const std::shared_ptr<const Program> program = conv_program(job, type, threads_of(stream));
  const bool halves = type == DType::bf16;
  const ConstBuffer none;
  Staging staging(stream, Staging::kAsItLies,
                  {{s.x(), halves ? none : job.x},
                   {s.weight(), job.w},
                   {channels, job.bias},
                   {s.y(), halves ? none : job.y}},
                  program->scratch_bytes());
  auto side = [&](const Shape& shape, ConstBuffer buffer, bool written) {
    if (halves) return const_cast<void*>(buffer.data);
    return staging.operand(shape, buffer, written);
  };
  const bool to_weights = job.pass == ConvPass::weight_gradient;
  std::vector<void*> externals = {side(s.x(), job.x, job.pass == ConvPass::input_gradient),
                                  staging.operand(s.weight(), job.w, to_weights)};
  if (job.bias) externals.push_back(staging.operand(channels, job.bias, to_weights));
  externals.push_back(side(s.y(), job.y, job.pass == ConvPass::forward));
  submit(stream, job.kernel, program, std::move(externals), staging.own());
  staging.finish();
}

void submit_job(Stream& stream, const Job& job) {
  check(stream, job);
  const Way way = way_of(job);
  const bool by_tiles = way == Way::as_halves && has_tiles();
  if (!by_tiles && submit_to_winograd(stream, job)) return;
  if (way == Way::in_pieces) return submit_pieces(stream, job);
  submit_program(stream, job, way == Way::as_halves ? DType::bf16 : DType::f32);
}

Conv2dLayouts ask_layouts(const Conv2dShape& s) {
  const ThreadsScope scope(allowed_cores());
  const Desc any_weight = any_desc(weight_dims(s), Type::f32);
  const LayoutId first = s.c < kFewChannels ? kPlain : block_layout();
  for (LayoutId x : {first, block_layout()}) {
    const auto desc = forward_desc(s,
                                   {activation_desc(s.x(), x, Type::f32), any_weight,
                                    activation_desc(s.y(), block_layout(), Type::f32)},
                                   {});
    if (rank_of(desc) == 2) return {x, weight_layout(desc.weights_desc()), block_layout()};
  }
  return {};
}

}  // namespace

std::shared_ptr<const Program> conv_program(const ConvJob& job, DType type, int threads) {
  // The process's, like the engine: the primitives of all devices.
  static auto* programs = new Cache<std::shared_ptr<const Program>>;
  std::shared_ptr<const Program> program;
  guarded(job.kernel, [&] {
    program = programs->get(key_of(job.shape, job.pass, job.x.layout, job.w.layout, job.y.layout,
                                   bool(job.bias), type, threads),
                            [&] { return make_program(job, type, threads); });
  });
  return program;
}

Conv2dLayouts conv2d_layouts(const Conv2dShape& shape, DType dtype) {
  if (dtype != DType::f32 && dtype != DType::bf16) return {};
  static auto* known = new Cache<Conv2dLayouts>;
  Conv2dLayouts layouts;
  guarded("conv2d_layouts",
          [&] { layouts = known->get(key_of(shape), [&] { return ask_layouts(shape); }); });
  layouts.full_weight = dtype == DType::bf16;
  return layouts;
}

void conv2d_forward(Stream& stream, const Conv2dShape& shape, ConstBuffer x, ConstBuffer w,
                    ConstBuffer b, Buffer y) {
  submit_job(stream, {"conv2d_forward", ConvPass::forward, shape, x, w, b, y});
}

void conv2d_input_gradient(Stream& stream, const Conv2dShape& shape, ConstBuffer dy, ConstBuffer w,
                           Buffer dx) {
  submit_job(stream, {"conv2d_input_gradient", ConvPass::input_gradient, shape, dx, w, {}, dy});
}

void conv2d_weight_gradient(Stream& stream, const Conv2dShape& shape, ConstBuffer x, ConstBuffer dy,
                            Buffer dw, Buffer db) {
  submit_job(stream, {"conv2d_weight_gradient", ConvPass::weight_gradient, shape, x, dw, db, dy});
}

}  // namespace convoy::cpu
