#include "bench/kernel_cases.h"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/elementwise.h"

namespace convoy {
namespace {

using Buffers = std::span<const Buffer>;

struct ConvRow {
  std::int64_t extent, c, k, filter, stride, count;
};
constexpr ConvRow kConvolutions[] = {
    {224, 3, 64, 7, 2, 1},    {56, 64, 64, 1, 1, 1},    {56, 64, 64, 3, 1, 3},
    {56, 64, 256, 1, 1, 4},   {56, 256, 64, 1, 1, 2},   {56, 256, 128, 1, 1, 1},
    {56, 128, 128, 3, 2, 1},  {28, 128, 512, 1, 1, 4},  {56, 256, 512, 1, 2, 1},
    {28, 512, 128, 1, 1, 3},  {28, 128, 128, 3, 1, 3},  {28, 512, 256, 1, 1, 1},
    {28, 256, 256, 3, 2, 1},  {14, 256, 1024, 1, 1, 6}, {28, 512, 1024, 1, 2, 1},
    {14, 1024, 256, 1, 1, 5}, {14, 256, 256, 3, 1, 5},  {14, 1024, 512, 1, 1, 1},
    {14, 512, 512, 3, 2, 1},  {7, 512, 2048, 1, 1, 3},  {14, 1024, 2048, 1, 2, 1},
    {7, 2048, 512, 1, 1, 2},  {7, 512, 512, 3, 1, 2}};

// Batch norms by size of their input; those of a block's last layer add the residual.
struct NormRow {
  std::int64_t extent, c;
  bool residual;
  std::int64_t count;
};
constexpr NormRow kNorms[] = {
    {112, 64, false, 1}, {56, 64, false, 6},   {56, 256, true, 3},  {56, 256, false, 1},
    {56, 128, false, 1}, {28, 128, false, 7},  {28, 512, true, 4},  {28, 512, false, 1},
    {28, 256, false, 1}, {14, 256, false, 11}, {14, 1024, true, 6}, {14, 1024, false, 1},
    {14, 512, false, 1}, {7, 512, false, 5},   {7, 2048, true, 3},  {7, 2048, false, 1}};

constexpr std::int64_t kClasses = 1000;
constexpr double kEpsilon = 1e-5;
constexpr std::int64_t kSector = 16;  // values of bf16 in a sector of a GPU's memory

using Call = decltype(KernelCase::call);
struct Work {
  std::string shape;
  std::int64_t count = 1;
  double flops = 0;
};

class Cases {
 public:
  Cases(const KernelTable& kernels, const KernelCaseOptions& options)
      : kernels_(kernels), options_(options) {}

  std::vector<KernelCase> make();

 private:
  // Operands of a batch norm.
  struct Norm {
    BatchNormShape shape{};
    Work work;
    OperandOfCase x, mask, mean, m2, gamma;
  };
  std::int64_t extent(std::int64_t of_224) const {
    return std::max<std::int64_t>(of_224 * options_.image_size / 224, 1);
  }
  // Rows of channels fill whole sectors, as those of the whole network do.
  std::int64_t channels(std::int64_t whole) const {
    if (whole == 3 || options_.channel_divisor == 1) return whole;
    const std::int64_t part = whole / options_.channel_divisor;
    return std::max<std::int64_t>((part + kSector - 1) / kSector, 1) * kSector;
  }
  DType parameter() const { return options_.dtype == DType::f64 ? DType::f64 : DType::f32; }
  OperandOfCase tensor(const Shape& shape, LayoutId layout, DType dtype) const {
    return {kernels_.layout_bytes(layout, shape, dtype), dtype, layout};
  }
  OperandOfCase tensor(const Shape& shape, LayoutId layout = kPlain) const {
    return tensor(shape, layout, options_.dtype);
  }
  // Where activations lie between convolutions.
  LayoutId usual_layout(std::int64_t c) const {
    return kernels_.conv2d_layouts({1, c, 8, 8, c, 3, 3, 1, 1, 1, 1}, options_.dtype).y;
  }

  void add(std::string name, const Work& work, std::vector<OperandOfCase> operands, Call call) {
    cases_.push_back({std::move(name), work.shape, work.count, work.flops, std::move(operands),
                      std::move(call)});
  }
  void add_convolution(const ConvRow& row);
  void add_linear();
  Norm norm_of(const NormRow& row) const;
  void add_norm(const NormRow& row);
  void add_max_pool();
  void add_avg_pool();
  void add_loss();
  void add_elementwise();
  void add_optimizers();

  const KernelTable& kernels_;
  const KernelCaseOptions options_;
  std::vector<KernelCase> cases_;
  std::vector<std::int64_t> parameters_;  // sizes of the network's tensors
};

void Cases::add_convolution(const ConvRow& row) {
  const std::int64_t size = extent(row.extent), padding = (row.filter - 1) / 2;
  const std::int64_t c = channels(row.c), k = channels(row.k), filter = row.filter;
  const Conv2dShape s{options_.images, c,          size,       size,    k,      filter,
                      filter,          row.stride, row.stride, padding, padding};
  const Conv2dLayouts layouts = kernels_.conv2d_layouts(s, options_.dtype);
  const auto x = tensor(s.x(), layouts.x), y = tensor(s.y(), layouts.y);
  const auto w = tensor(s.weight(), layouts.weight);
  const auto dw = tensor(s.weight(), layouts.weight, parameter());
  const std::int64_t products = s.weight().count() / k;  // of one value of y
  const Work work{fmt::format("n{} c{} {}x{} k{} {}x{} stride {}", s.n, c, size, size, k, filter,
                              filter, row.stride),
                  row.count, 2.0 * static_cast<double>(s.y().count() * products)};
  add("conv2d_forward", work, {x, w, y}, [s](const KernelTable& table, Stream& on, Buffers b) {
    table.conv2d_forward(on, s, b[0], b[1], {}, b[2]);
  });
  if (row.c != 3) {
    add("conv2d_input_gradient", work, {y, w, x},
        [s](const KernelTable& table, Stream& on, Buffers b) {
          table.conv2d_input_gradient(on, s, b[0], b[1], b[2]);
        });
  }
  add("conv2d_weight_gradient", work, {x, y, dw},
      [s](const KernelTable& table, Stream& on, Buffers b) {
        table.conv2d_weight_gradient(on, s, b[0], b[1], b[2], {});
      });
  for (std::int64_t i = 0; i < row.count; ++i) {
    parameters_.insert(parameters_.end(), {s.weight().count(), k, k});
  }
}

void Cases::add_linear() {
  const LinearShape s{options_.images, channels(2048), channels(kClasses)};
  const auto x = tensor({s.rows, s.in}), w = tensor({s.out, s.in}), y = tensor({s.rows, s.out});
  const auto b = tensor({s.out}, kPlain, parameter());
  const auto dw = tensor({s.out, s.in}, kPlain, parameter());
  const Work work{fmt::format("{} rows, {} to {}", s.rows, s.in, s.out), 1,
                  2.0 * static_cast<double>(s.rows * s.in * s.out)};
  add("linear_forward", work, {x, w, b, y}, [s](const KernelTable& k, Stream& on, Buffers of) {
    k.linear_forward(on, s, of[0], of[1], of[2], of[3]);
  });
  add("linear_input_gradient", work, {y, w, x}, [s](const KernelTable& k, Stream& on, Buffers of) {
    k.linear_input_gradient(on, s, of[0], of[1], of[2]);
  });
  add("linear_weight_gradient", work, {x, y, dw, b},
      [s](const KernelTable& k, Stream& on, Buffers of) {
        k.linear_weight_gradient(on, s, of[0], of[1], of[2], of[3]);
      });
  parameters_.insert(parameters_.end(), {s.out * s.in, s.out});
}

Cases::Norm Cases::norm_of(const NormRow& row) const {
  const std::int64_t size = extent(row.extent);
  Norm norm = {};
  norm.shape = {options_.images, channels(row.c), size * size};
  const LayoutId layout = usual_layout(norm.shape.c);
  const auto channels = static_cast<std::size_t>(norm.shape.c);
  norm.work = {fmt::format("n{} c{} {}x{}{}", options_.images, channels, size, size,
                           row.residual ? ", residual" : ""),
               row.count};
  norm.x = tensor(norm.shape.x(), layout);
  norm.mask = {kernels_.batch_norm_mask_bytes(norm.shape, layout, options_.dtype), DType::u8};
  norm.mean = {8 * channels, DType::f64};
  norm.m2 = {8 * channels, DType::f64, kPlain, Content::positive};
  norm.gamma = {size_of(parameter()) * channels, parameter()};
  return norm;
}

void Cases::add_norm(const NormRow& row) {
  const Norm norm = norm_of(row);
  const BatchNormShape s = norm.shape;
  const auto values = static_cast<double>(s.n * s.spatial);
  const bool has_residual = row.residual;
  add("batch_norm_statistics", norm.work, {norm.x, norm.mean, norm.m2},
      [s](const KernelTable& k, Stream& on, Buffers b) {
        k.batch_norm_statistics(on, s, b[0], b[1], b[2]);
      });
  // An operand of no bytes is left out.
  const OperandOfCase residual = has_residual ? norm.x : OperandOfCase();
  add("batch_norm_apply", norm.work,
      {norm.x, norm.mean, norm.m2, norm.gamma, norm.gamma, residual, norm.x, norm.mask},
      [s, values](const KernelTable& k, Stream& on, Buffers b) {
        k.batch_norm_apply(on, s, b[0], {b[1], b[2], values}, kEpsilon, b[3], b[4], b[5], true,
                           b[6], b[7]);
      });
  const OperandOfCase y = norm.mask.bytes > 0 ? OperandOfCase() : norm.x;
  add("batch_norm_backward_reduce", norm.work,
      {norm.x, y, norm.mask, norm.x, norm.mean, norm.m2, norm.mean, norm.mean},
      [s, values](const KernelTable& k, Stream& on, Buffers b) {
        k.batch_norm_backward_reduce(on, s, b[0], b[1], b[2], b[3], {b[4], b[5], values}, kEpsilon,
                                     true, b[6], b[7]);
      });
  add("batch_norm_backward_apply", norm.work,
      {norm.x, y, norm.mask, norm.x, norm.mean, norm.m2, norm.mean, norm.mean, norm.gamma, norm.x,
       residual},
      [s, values](const KernelTable& k, Stream& on, Buffers b) {
        k.batch_norm_backward_apply(on, s, b[0], b[1], b[2], b[3], {b[4], b[5], values}, kEpsilon,
                                    true, b[8], b[6], b[7], b[9], b[10]);
      });
}

void Cases::add_max_pool() {
  const std::int64_t size = extent(112);
  const Pool2dShape s{options_.images, channels(64), size, size, 3, 3, 2, 2, 1, 1};
  const LayoutId layout = usual_layout(s.c);
  const auto x = tensor(s.x(), layout), y = tensor(s.y(), layout);
  OperandOfCase index = tensor(s.y(), layout, DType::u8);
  index.content = Content::window_places;
  index.limit = 9;
  const Work work{fmt::format("n{} c{} {}x{} 3x3 stride 2", s.n, s.c, size, size)};
  add("max_pool2d_forward", work, {x, y, index}, [s](const KernelTable& k, Stream& on, Buffers b) {
    k.max_pool2d_forward(on, s, b[0], b[1], b[2]);
  });
  add("max_pool2d_backward", work, {y, index, x}, [s](const KernelTable& k, Stream& on, Buffers b) {
    k.max_pool2d_backward(on, s, b[0], b[1], b[2]);
  });
}

void Cases::add_avg_pool() {
  const std::int64_t size = extent(7);
  const Pool2dShape s{options_.images, channels(2048), size, size, size, size, 1, 1};
  const auto x = tensor(s.x(), usual_layout(s.c)), y = tensor(s.y());
  const Work work{fmt::format("n{} c{} {}x{}", s.n, s.c, size, size)};
  add("avg_pool2d_forward", work, {x, y}, [s](const KernelTable& k, Stream& on, Buffers b) {
    k.avg_pool2d_forward(on, s, b[0], b[1]);
  });
  add("avg_pool2d_backward", work, {y, x}, [s](const KernelTable& k, Stream& on, Buffers b) {
    k.avg_pool2d_backward(on, s, b[0], b[1]);
  });
}

void Cases::add_loss() {
  const std::int64_t rows = options_.images, classes = channels(kClasses);
  const CrossEntropyShape s{rows, classes, 0.1, 1.0 / static_cast<double>(rows)};
  const auto logits = tensor({rows, classes});
  const OperandOfCase labels{8 * std::size_t(rows), DType::i64, kPlain, Content::labels, classes};
  const OperandOfCase loss{size_of(parameter()), parameter()};
  add("softmax_cross_entropy", {fmt::format("{} rows, {} classes", rows, classes)},
      {logits, labels, loss, logits}, [s](const KernelTable& k, Stream& on, Buffers b) {
        k.softmax_cross_entropy(on, s, b[0], b[1], b[2], b[3]);
      });
}

// What a step has in many sizes, or not at all: one size, weighed with 0.
void Cases::add_elementwise() {
  const Shape shape{options_.images, channels(256), extent(56), extent(56)};
  const std::int64_t count = shape.count();
  const auto x = tensor(shape);
  const Work work{fmt::format("{} values", count), 0};
  add("binary_forward", work, {x, x, x}, [count](const KernelTable& k, Stream& on, Buffers b) {
    k.binary_forward(on, Binary::add, count, b[0], b[1], b[2]);
  });
  add("unary_forward", work, {x, x}, [count](const KernelTable& k, Stream& on, Buffers b) {
    k.unary_forward(on, Unary::relu, count, b[0], b[1]);
  });
  add("cast", work, {tensor(shape, kPlain, DType::f32), x},
      [count](const KernelTable& k, Stream& on, Buffers b) { k.cast(on, count, b[0], b[1]); });
  add("fill", work, {x},
      [count](const KernelTable& k, Stream& on, Buffers b) { k.fill(on, count, 0, b[0]); });
}

// The network's tensors as pieces of flat memory: weights, gradients, two states.
std::vector<OptimizerSlot> slots_of(const std::vector<std::int64_t>& sizes, Buffers b) {
  std::vector<OptimizerSlot> slots;
  std::size_t offset = 0;
  const auto piece = [&](const Buffer& whole) {
    return Buffer{static_cast<char*>(whole.data) + offset, whole.dtype, kPlain};
  };
  for (const std::int64_t size : sizes) {
    slots.push_back({.count = size,
                     .weight = piece(b[0]),
                     .gradient = piece(b[1]),
                     .state1 = piece(b[2]),
                     .state2 = b.size() > 3 ? piece(b[3]) : Buffer(),
                     .weight_decay = 1e-4});
    offset += (size_of(b[0].dtype) * std::size_t(size) + 255) / 256 * 256;
  }
  return slots;
}

void Cases::add_optimizers() {
  OperandOfCase flat{0, parameter()};
  std::int64_t count = 0;
  for (const std::int64_t size : parameters_) {
    flat.bytes += (size_of(flat.dtype) * std::size_t(size) + 255) / 256 * 256;
    count += size;
  }
  OperandOfCase second = flat;
  second.content = Content::positive;
  const Work work{fmt::format("{} parameters in {} tensors", count, parameters_.size())};
  const auto sizes = parameters_;
  add("sgd_update", work, {flat, flat, flat}, [sizes](const KernelTable& k, Stream& on, Buffers b) {
    k.sgd_update(on, slots_of(sizes, b), {.lr = 1e-3, .momentum = 0.9});
  });
  const Work once{work.shape, 0};  // a step has one of the three
  add("lars_update", once, {flat, flat, flat},
      [sizes](const KernelTable& k, Stream& on, Buffers b) {
        k.lars_update(on, slots_of(sizes, b), {.lr = 1e-3, .momentum = 0.9});
      });
  add("adamw_update", once, {flat, flat, flat, second},
      [sizes](const KernelTable& k, Stream& on, Buffers b) {
        k.adamw_update(on, slots_of(sizes, b), {.lr = 1e-3});
      });
}

std::vector<KernelCase> Cases::make() {
  for (const ConvRow& row : kConvolutions) add_convolution(row);
  add_linear();
  for (const NormRow& row : kNorms) add_norm(row);
  add_max_pool();
  add_avg_pool();
  add_loss();
  add_elementwise();
  add_optimizers();
  return std::move(cases_);
}

}  // namespace

double KernelCase::bytes() const {
  double sum = 0;
  for (const OperandOfCase& operand : operands) sum += static_cast<double>(operand.bytes);
  return sum;
}

std::vector<KernelCase> resnet50_cases(const KernelTable& kernels,
                                       const KernelCaseOptions& options) {
  return Cases(kernels, options).make();
}

}  // namespace convoy
