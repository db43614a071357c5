#include "kernels/cpu/staging.h"

#include "kernels/cpu/isa.h"
#include "kernels/cpu/parallel.h"

namespace convoy::cpu {
namespace {

std::size_t padded(std::size_t bytes) {
  return (bytes + 63) / 64 * 64;
}

std::size_t bytes_in(LayoutId layout, const Shape& shape) {
  return padded(static_cast<std::size_t>(stored_floats(layout, shape)) * sizeof(float));
}

// One image at a time for layouts with different blocks, through the plain order of elements.
void change_block(const ActivationShape& a, const float* x, int from, float* y, int to) {
  const std::int64_t stored = (a.c + to - 1) / to * to;
  const std::int64_t stored_x = (a.c + from - 1) / from * from;
  parallel_for(a.n * stored, a.spatial, [=](std::int64_t i) {
    const std::int64_t image = i / stored, c = i % stored;
    const float* source = x + (image * stored_x + c / from * from) * a.spatial + c % from;
    float* target = y + (image * stored + c / to * to) * a.spatial + c % to;
    for (std::int64_t s = 0; s < a.spatial; ++s) {
      target[s * to] = c < a.c ? source[s * from] : 0.0f;
    }
  });
}

void pack(const ActivationShape& a, const float* x, float* y, LayoutId to) {
  const Runs runs(to, a.n, a.c, a.spatial);
  parallel_for(runs.count, runs.length, [=](std::int64_t i) {
    const std::int64_t channel = i / runs.blocks * a.c + i % runs.blocks * runs.period;
    loops().to_blocks(x + channel * a.spatial, runs.used(i), a.spatial, runs.period,
                      y + i * runs.length);
  });
}

void unpack(const ActivationShape& a, const float* x, LayoutId from, float* y) {
  const Runs runs(from, a.n, a.c, a.spatial);
  parallel_for(runs.count, runs.length, [=](std::int64_t i) {
    const std::int64_t channel = i / runs.blocks * a.c + i % runs.blocks * runs.period;
    loops().from_blocks(x + i * runs.length, runs.used(i), a.spatial, runs.period,
                        y + channel * a.spatial);
  });
}

void copy(const float* x, float* y, std::int64_t count) {
  parallel_parts(count, [=](std::int64_t, std::int64_t begin, std::int64_t size) {
    __builtin_memcpy(y + begin, x + begin, static_cast<std::size_t>(size) * sizeof(float));
  });
}

}  // namespace

void submit_reorder(Stream& stream, const Shape& shape, const float* x, LayoutId from, float* y,
                    LayoutId to) {
  const ActivationShape a(shape);
  host(stream).submit([=] {
    if (from == to) {
      copy(x, y, stored_floats(from, shape));
    } else if (from == kPlain) {
      pack(a, x, y, to);
    } else if (to == kPlain) {
      unpack(a, x, from, y);
    } else {
      change_block(a, x, block_of(from), y, block_of(to));
    }
  });
}

Staging::Staging(Stream& stream, LayoutId working, std::initializer_list<Item> items,
                 std::size_t own_bytes)
    : stream_(stream), working_(working) {
  std::size_t bytes = padded(own_bytes);
  for (const Item& item : items) {
    if (item.buffer && item.buffer.layout != working) bytes += bytes_in(working, item.shape);
  }
  if (bytes > 0) own_ = static_cast<std::byte*>(stream.scratch(bytes));
  next_ = own_ + padded(own_bytes);
}

float* Staging::take(const Shape& shape) {
  auto* data = reinterpret_cast<float*>(next_);
  next_ += bytes_in(working_, shape);
  return data;
}

const float* Staging::input(const Shape& shape, ConstBuffer buffer) {
  if (!buffer || buffer.layout == working_) return buffer.as<float>();
  float* copy = take(shape);
  submit_reorder(stream_, shape, buffer.as<float>(), buffer.layout, copy, working_);
  return copy;
}

float* Staging::output(const Shape& shape, Buffer buffer) {
  if (!buffer || buffer.layout == working_) return buffer.as<float>();
  float* copy = take(shape);
  copies_.push_back({shape, copy, buffer});
  return copy;
}

void Staging::finish() {
  for (const Copy& copy : copies_) {
    submit_reorder(stream_, copy.shape, copy.from, working_, copy.to.as<float>(), copy.to.layout);
  }
}

}  // namespace convoy::cpu
