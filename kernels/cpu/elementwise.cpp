// Elementwise kernels: any layout, stored elements in parts over the cores.
#include "kernels/base/error.h"
#include "kernels/base/host_stream.h"
#include "kernels/cpu/checks.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/parallel.h"

namespace convoy::cpu {
namespace {

template <class T>
T* at(T* data, std::int64_t begin) {
  return data ? data + begin : nullptr;
}

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
      break;
  }
}

}  // namespace

void unary_forward(Stream& stream, Unary op, std::int64_t count, ConstBuffer x, Buffer y) {
  require_f32("unary_forward", stream, {x, y});
  host(stream).submit([=, code = static_cast<int>(op)] {
    parallel_parts(count, [=](std::int64_t, std::int64_t begin, std::int64_t size) {
      loops().unary_forward(code, size, x.as<float>() + begin, y.as<float>() + begin);
    });
  });
}

void unary_backward(Stream& stream, Unary op, std::int64_t count, ConstBuffer x, ConstBuffer y,
                    ConstBuffer dy, Buffer dx) {
  require_f32("unary_backward", stream, {x, y, dy, dx});
  // An op needs x or y, not both: the one left out is not looked at, so any memory stands for it.
  const float* in = x ? x.as<float>() : y.as<float>();
  const float* result = y ? y.as<float>() : in;
  host(stream).submit([=, code = static_cast<int>(op)] {
    parallel_parts(count, [=](std::int64_t, std::int64_t begin, std::int64_t size) {
      loops().unary_backward(code, size, in + begin, result + begin, dy.as<float>() + begin,
                             dx.as<float>() + begin);
    });
  });
}

void binary_forward(Stream& stream, Binary op, std::int64_t count, ConstBuffer a, ConstBuffer b,
                    Buffer y) {
  require_f32("binary_forward", stream, {a, b, y});
  host(stream).submit([=, code = static_cast<int>(op)] {
    parallel_parts(count, [=](std::int64_t, std::int64_t begin, std::int64_t size) {
      loops().binary_forward(code, size, a.as<float>() + begin, b.as<float>() + begin,
                             y.as<float>() + begin);
    });
  });
}

void binary_backward(Stream& stream, Binary op, std::int64_t count, ConstBuffer a, ConstBuffer b,
                     ConstBuffer dy, Buffer da, Buffer db) {
  require_f32("binary_backward", stream, {a, b, dy, da, db});
  // As above: operands left out are not looked at.
  const float* left = a ? a.as<float>() : dy.as<float>();
  const float* right = b ? b.as<float>() : dy.as<float>();
  host(stream).submit([=, code = static_cast<int>(op)] {
    parallel_parts(count, [=](std::int64_t, std::int64_t begin, std::int64_t size) {
      loops().binary_backward(code, size, left + begin, right + begin, dy.as<float>() + begin,
                              at(da.as<float>(), begin), at(db.as<float>(), begin));
    });
  });
}

void fill(Stream& stream, std::int64_t count, double value, Buffer x) {
  CONVOY_CHECK(x.dtype != DType::bf16, "fill: {} has no bf16 yet", to_string(stream.device()));
  host(stream).submit([=] { fill_any(x, count, value); });
}

void scale(Stream& stream, std::int64_t count, double factor, Buffer x) {
  if (x.dtype != DType::f64) require_f32("scale", stream, {x});
  host(stream).submit([=] {
    parallel_parts(count, [=](std::int64_t, std::int64_t begin, std::int64_t size) {
      if (x.dtype == DType::f64) {
        for (std::int64_t i = begin; i < begin + size; ++i) x.as<double>()[i] *= factor;
      } else {
        float* data = x.as<float>() + begin;
        loops().scale(size, static_cast<float>(factor), data, data);
      }
    });
  });
}

}  // namespace convoy::cpu
