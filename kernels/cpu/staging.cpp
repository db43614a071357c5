#include "kernels/cpu/staging.h"

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/values.h"

namespace convoy::cpu {
namespace {

std::size_t padded(std::size_t bytes) {
  return (bytes + 63) / 64 * 64;
}

std::size_t bytes_in(LayoutId layout, const Shape& shape, DType type) {
  return padded(static_cast<std::size_t>(stored_floats(layout, shape)) * size_of(type));
}

// One image at a time for layouts with different blocks, through the plain order of elements.
template <class T>
void change_block(const ActivationShape& a, const T* x, int from, T* y, int to) {
  const std::int64_t stored = (a.c + to - 1) / to * to;
  const std::int64_t stored_x = (a.c + from - 1) / from * from;
  parallel_for(a.n * stored, a.spatial, [=](std::int64_t i) {
    const std::int64_t image = i / stored, c = i % stored;
    const T* source = x + (image * stored_x + c / from * from) * a.spatial + c % from;
    T* target = y + (image * stored + c / to * to) * a.spatial + c % to;
    for (std::int64_t s = 0; s < a.spatial; ++s) {
      target[s * to] = c < a.c ? source[s * from] : T{};
    }
  });
}

template <class T>
void pack(const ActivationShape& a, const T* x, T* y, LayoutId to) {
  const Runs runs(to, a.n, a.c, a.spatial);
  parallel_for(runs.count, runs.length, [=](std::int64_t i) {
    const std::int64_t channel = i / runs.blocks * a.c + i % runs.blocks * runs.period;
    loops_of<T>().to_blocks(x + channel * a.spatial, runs.used(i), a.spatial, runs.period,
                            y + i * runs.length);
  });
}

template <class T>
void unpack(const ActivationShape& a, const T* x, LayoutId from, T* y) {
  const Runs runs(from, a.n, a.c, a.spatial);
  parallel_for(runs.count, runs.length, [=](std::int64_t i) {
    const std::int64_t channel = i / runs.blocks * a.c + i % runs.blocks * runs.period;
    loops_of<T>().from_blocks(x + i * runs.length, runs.used(i), a.spatial, runs.period,
                              y + channel * a.spatial);
  });
}

template <class T>
void copy(const T* x, T* y, std::int64_t count) {
  parallel_parts(count, [=](std::int64_t, std::int64_t begin, std::int64_t size) {
    __builtin_memcpy(y + begin, x + begin, static_cast<std::size_t>(size) * sizeof(T));
  });
}

template <class T>
void reorder(const Shape& shape, const T* x, LayoutId from, T* y, LayoutId to) {
  const ActivationShape a(shape);
  if (from == to) {
    copy(x, y, stored_floats(from, shape));
  } else if (from == kPlain) {
    pack(a, x, y, to);
  } else if (to == kPlain) {
    unpack(a, x, from, y);
  } else {
    change_block(a, x, block_of(from), y, block_of(to));
  }
}

void submit_convert(Stream& stream, const Shape& shape, ConstBuffer x, Buffer y) {
  const std::int64_t count = stored_floats(x.layout, shape);
  host(stream).submit([=] { convert_values(count, x, y); });
}

}  // namespace

void submit_reorder(Stream& stream, const Shape& shape, ConstBuffer x, Buffer y) {
  host(stream).submit([=] {
    with_values(x.dtype,
                [&]<class T>(T) { reorder(shape, x.as<T>(), x.layout, y.as<T>(), y.layout); });
  });
}

Staging::Staging(Stream& stream, LayoutId working, std::initializer_list<Item> items,
                 std::size_t own_bytes, DType type)
    : stream_(stream), working_(working), type_(type) {
  std::size_t bytes = padded(own_bytes);
  for (const Item& item : items) bytes += bytes_for(item);
  if (bytes > 0) own_ = static_cast<std::byte*>(stream.scratch(bytes));
  next_ = own_ + padded(own_bytes);
}

Staging::Way Staging::way_of(ConstBuffer buffer) const {
  const LayoutId layout = working_ == kAsItLies || !buffer ? buffer.layout : working_;
  return {layout, buffer.layout != layout, buffer && buffer.dtype != type_};
}

std::size_t Staging::bytes_for(const Item& item) const {
  const Way way = way_of(item.buffer);
  return (way.moves ? bytes_in(way.layout, item.shape, item.buffer.dtype) : 0) +
         (way.changes ? bytes_in(way.layout, item.shape, type_) : 0);
}

Buffer Staging::take(const Shape& shape, LayoutId layout, DType type) {
  const Buffer result{next_, type, layout};
  next_ += bytes_in(layout, shape, type);
  return result;
}

ConstBuffer Staging::input_buffer(const Shape& shape, ConstBuffer buffer) {
  const Way way = way_of(buffer);
  if (way.moves) {
    const Buffer copy = take(shape, way.layout, buffer.dtype);
    submit_reorder(stream_, shape, buffer, copy);
    buffer = copy;
  }
  if (way.changes) {
    const Buffer copy = take(shape, way.layout, type_);
    submit_convert(stream_, shape, buffer, copy);
    buffer = copy;
  }
  return buffer;
}

Buffer Staging::output_buffer(const Shape& shape, Buffer buffer) {
  const Way way = way_of(buffer);
  if (!way.moves && !way.changes) return buffer;
  const Buffer between = way.moves ? take(shape, way.layout, buffer.dtype) : buffer;
  const Buffer from = way.changes ? take(shape, way.layout, type_) : between;
  copies_.push_back({shape, from, buffer, between});
  return from;
}

void Staging::finish() {
  for (const Copy& copy : copies_) {
    if (copy.from.data != copy.between.data) {
      submit_convert(stream_, copy.shape, copy.from, copy.between);
    }
    if (copy.between.data != copy.to.data) {
      submit_reorder(stream_, copy.shape, copy.between, copy.to);
    }
  }
}

}  // namespace convoy::cpu
