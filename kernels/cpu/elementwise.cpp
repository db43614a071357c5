// Elementwise kernels: any layout, stored elements in parts over the cores.
#include "kernels/base/bf16.h"
#include "kernels/base/host_stream.h"
#include "kernels/cpu/checks.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/values.h"

namespace convoy::cpu {
namespace {

template <class T>
void fill_parts(T* x, std::int64_t count, T value) {
  parallel_parts(count, [=](std::int64_t, std::int64_t begin, std::int64_t size) {
    for (std::int64_t i = begin; i < begin + size; ++i) x[i] = value;
  });
}

void fill_any(Buffer x, std::int64_t count, double value) {
  switch (x.dtype) {
    case DType::f32:
      return fill_parts(x.as<float>(), count, static_cast<float>(value));
    case DType::f64:
      return fill_parts(x.as<double>(), count, value);
    case DType::i64:
      return fill_parts(x.as<std::int64_t>(), count, static_cast<std::int64_t>(value));
    case DType::i32:
      return fill_parts(x.as<std::int32_t>(), count, static_cast<std::int32_t>(value));
    case DType::u8:
      return fill_parts(x.as<std::uint8_t>(), count, static_cast<std::uint8_t>(value));
    case DType::bf16:
      return fill_parts(x.as<Bf16>(), count, Bf16(static_cast<float>(value)));
  }
}

}  // namespace

void unary_forward(Stream& stream, Unary op, std::int64_t count, ConstBuffer x, Buffer y) {
  require_values("unary_forward", stream, {x, y});
  host(stream).submit([=, code = static_cast<int>(op)] {
    each_chunk<1, 1>(count, {x}, {y}, [=](std::int64_t size, const auto& in, const auto& out) {
      loops().unary_forward(code, size, in[0], out[0]);
    });
  });
}

void unary_backward(Stream& stream, Unary op, std::int64_t count, ConstBuffer x, ConstBuffer y,
                    ConstBuffer dy, Buffer dx) {
  require_values("unary_backward", stream, {x, y, dy, dx});
  // An op needs x or y, not both: the one left out is not looked at, so the other stands for it.
  const ConstBuffer from = x ? x : y, result = y ? y : from;
  host(stream).submit([=, code = static_cast<int>(op)] {
    each_chunk<3, 1>(count, {from, result, dy}, {dx},
                     [=](std::int64_t size, const auto& in, const auto& out) {
                       loops().unary_backward(code, size, in[0], in[1], in[2], out[0]);
                     });
  });
}

void binary_forward(Stream& stream, Binary op, std::int64_t count, ConstBuffer a, ConstBuffer b,
                    Buffer y) {
  require_values("binary_forward", stream, {a, b, y});
  host(stream).submit([=, code = static_cast<int>(op)] {
    each_chunk<2, 1>(count, {a, b}, {y}, [=](std::int64_t size, const auto& in, const auto& out) {
      loops().binary_forward(code, size, in[0], in[1], out[0]);
    });
  });
}

void binary_backward(Stream& stream, Binary op, std::int64_t count, ConstBuffer a, ConstBuffer b,
                     ConstBuffer dy, Buffer da, Buffer db) {
  require_values("binary_backward", stream, {a, b, dy, da, db});
  // As above: dy stands for operands left out.
  const ConstBuffer left = a ? a : dy, right = b ? b : dy;
  host(stream).submit([=, code = static_cast<int>(op)] {
    each_chunk<3, 2>(count, {left, right, dy}, {da, db},
                     [=](std::int64_t size, const auto& in, const auto& out) {
                       loops().binary_backward(code, size, in[0], in[1], in[2], out[0], out[1]);
                     });
  });
}

void fill(Stream& stream, std::int64_t count, double value, Buffer x) {
  if (x.dtype == DType::bf16) require_values("fill", stream, {x});
  host(stream).submit([=] { fill_any(x, count, value); });
}

void scale(Stream& stream, std::int64_t count, double factor, Buffer x) {
  if (x.dtype != DType::f64) require_values("scale", stream, {x});
  host(stream).submit([=] {
    if (x.dtype == DType::f64) {
      parallel_parts(count, [=](std::int64_t, std::int64_t begin, std::int64_t size) {
        for (std::int64_t i = begin; i < begin + size; ++i) x.as<double>()[i] *= factor;
      });
      return;
    }
    each_chunk<1, 1>(count, {x}, {x}, [=](std::int64_t size, const auto& in, const auto& out) {
      loops().scale(size, static_cast<float>(factor), in[0], out[0]);
    });
  });
}

}  // namespace convoy::cpu
