#include "engine/nn/layers.h"

#include <cmath>

#include "kernels/base/error.h"

namespace convoy {
Conv2d::Conv2d(std::int64_t in, std::int64_t out, Pair kernel, const Conv2dOptions& conv_options,
               bool with_bias, Conv2dInit init)
    : options(conv_options), init_(init) {
  CONVOY_CHECK(in >= 1 && out >= 1 && kernel.h >= 1 && kernel.w >= 1 && options.groups >= 1 &&
                   in % options.groups == 0 && out % options.groups == 0,
               "Conv2d: {} to {} channels, kernel {}x{}, {} groups: expected positive numbers and "
               "channels that the groups divide",
               in, out, kernel.h, kernel.w, options.groups);
  weight =
      register_parameter("weight", initial_values({out, in / options.groups, kernel.h, kernel.w}));
  if (with_bias) bias = register_parameter("bias", initial_values({out}));
  reset_with_manual_seed();
}

void Conv2d::reset(const std::function<RandomStream(const std::string&)>& stream) {
  const double places = static_cast<double>(weight.size(2) * weight.size(3));
  const double fan_in = static_cast<double>(weight.size(1)) * places;
  const std::int64_t out_of_group = weight.size(0) / options.groups;
  const double fan_out = static_cast<double>(out_of_group) * places;
  const double bound = 1 / std::sqrt(fan_in);
  if (init_ == Conv2dInit::normal_fan_out) {
    stream("weight").fill(weight, RandomKind::normal, std::sqrt(2 / fan_out));
  } else {
    stream("weight").fill(weight, RandomKind::symmetric, bound);
  }
  if (bias.defined()) stream("bias").fill(bias, RandomKind::symmetric, bound);
}

Tensor Conv2d::forward(const Tensor& x) {
  return conv2d(x, weight, bias, options);
}

std::string Conv2d::describe() const {
  std::string text = fmt::format("Conv2d({}, {}, {}x{}", weight.size(1) * options.groups,
                                 weight.size(0), weight.size(2), weight.size(3));
  if (options.stride.h != 1) text += fmt::format(", stride {}", options.stride.h);
  if (options.groups != 1) text += fmt::format(", groups {}", options.groups);
  return text + ")";
}

Linear::Linear(std::int64_t in, std::int64_t out, bool with_bias) {
  CONVOY_CHECK(in >= 1 && out >= 1, "Linear: {} to {} values, expected positive numbers", in, out);
  weight = register_parameter("weight", initial_values({out, in}));
  if (with_bias) bias = register_parameter("bias", initial_values({out}));
  reset_with_manual_seed();
}

void Linear::reset(const std::function<RandomStream(const std::string&)>& stream) {
  const double bound = 1 / std::sqrt(static_cast<double>(weight.size(1)));
  stream("weight").fill(weight, RandomKind::symmetric, bound);
  if (bias.defined()) stream("bias").fill(bias, RandomKind::symmetric, bound);
}

Tensor Linear::forward(const Tensor& x) {
  return linear(x, weight, bias);
}

std::string Linear::describe() const {
  return fmt::format("Linear({}, {})", weight.size(1), weight.size(0));
}

std::string MaxPool2d::describe() const {
  return fmt::format("MaxPool2d({}x{}, stride {})", options_.kernel.h, options_.kernel.w,
                     options_.stride.value_or(options_.kernel).h);
}

Sequential::Sequential(std::vector<std::shared_ptr<Module>> modules) {
  for (std::size_t i = 0; i < modules.size(); ++i) add(std::to_string(i), modules[i]);
}

Sequential& Sequential::add(const std::string& name, std::shared_ptr<Module> module) {
  register_module(name, std::move(module));
  return *this;
}

Tensor Sequential::forward(const Tensor& x) {
  Tensor value = x;
  for (const auto& [name, child] : children()) value = child->forward(value);
  return value;
}

Shape Conv2d::output_shape(const std::vector<Shape>& inputs) const {
  const Shape& x = inputs.at(0);
  auto extent = [](std::int64_t in, std::int64_t kernel, std::int64_t stride, std::int64_t padding,
                   std::int64_t dilation) {
    return (in + 2 * padding - dilation * (kernel - 1) - 1) / stride + 1;
  };
  return {x[0], weight.size(0),
          extent(x[2], weight.size(2), options.stride.h, options.padding.h, options.dilation.h),
          extent(x[3], weight.size(3), options.stride.w, options.padding.w, options.dilation.w)};
}

std::int64_t Conv2d::multiply_adds(const std::vector<Shape>& inputs) const {
  return output_shape(inputs).count() * weight.size(1) * weight.size(2) * weight.size(3);
}

Shape Linear::output_shape(const std::vector<Shape>& inputs) const {
  return {inputs.at(0)[0], weight.size(0)};
}

std::int64_t Linear::multiply_adds(const std::vector<Shape>& inputs) const {
  return inputs.at(0)[0] * weight.numel();
}

Shape MaxPool2d::output_shape(const std::vector<Shape>& inputs) const {
  const Shape& x = inputs.at(0);
  const Pair stride = options_.stride.value_or(options_.kernel);
  return {x[0], x[1], (x[2] + 2 * options_.padding.h - options_.kernel.h) / stride.h + 1,
          (x[3] + 2 * options_.padding.w - options_.kernel.w) / stride.w + 1};
}

Shape Sequential::output_shape(const std::vector<Shape>& inputs) const {
  Shape shape = inputs.at(0);
  for (const auto& [name, child] : children()) shape = child->output_shape({shape});
  return shape;
}

std::int64_t Sequential::multiply_adds(const std::vector<Shape>& inputs) const {
  Shape shape = inputs.at(0);
  std::int64_t sum = 0;
  for (const auto& [name, child] : children()) {
    sum += child->multiply_adds({shape});
    shape = child->output_shape({shape});
  }
  return sum;
}

}  // namespace convoy
