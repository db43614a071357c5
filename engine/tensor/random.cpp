#include "engine/tensor/random.h"

#include <string>

#include "engine/tensor/storage.h"
#include "engine/tensor/tensor.h"

namespace convoy {
namespace {

std::uint64_t fnv1a(std::string_view text) {
  std::uint64_t hash = 0xCBF29CE484222325ULL;
  for (unsigned char c : text) hash = (hash ^ c) * 0x100000001B3ULL;
  return hash;
}

// What manual_seed sets. Each thread has its own: a worker draws the same numbers whether workers
// are threads or processes, and whatever the others draw meanwhile.
struct Generator {
  std::uint64_t seed = 0;
  std::uint64_t calls = 0;
};

Generator& this_thread() {
  thread_local Generator generator;
  return generator;
}

}  // namespace

RandomStream::RandomStream(std::uint64_t seed, std::string_view name)
    : seed_(seed), name_hash_(fnv1a(name)) {}

std::vector<double> RandomStream::numbers(RandomKind kind, double factor,
                                          std::int64_t count) const {
  std::vector<double> result(static_cast<std::size_t>(count));
  draw_numbers(seed_, name_hash_, kind, factor, count, result.data());
  return result;
}

std::vector<double> RandomStream::uniform(std::int64_t count) const {
  return numbers(RandomKind::unit, 1, count);
}

std::vector<double> RandomStream::normal(std::int64_t count) const {
  return numbers(RandomKind::normal, 1, count);
}

void RandomStream::fill(const Tensor& tensor, RandomKind kind, double factor) const {
  const std::int64_t count = tensor.numel();
  const bool doubles = tensor.dtype() == DType::f64;
  if (tensor.layout() != kPlain || (!doubles && tensor.dtype() != DType::f32)) {
    return Tensor(tensor).copy_(
        Tensor::from(numbers(kind, factor, count), tensor.shape(), tensor.options()));
  }
  tensor.before_write();
  const auto write = [=, *this](void* memory) {
    if (doubles) {
      draw_numbers(seed_, name_hash_, kind, factor, count, static_cast<double*>(memory));
    } else {
      draw_numbers(seed_, name_hash_, kind, factor, count, static_cast<float*>(memory));
    }
  };
  context(tensor.device())
      .write_in(current_stream(tensor.device()), tensor.buffer().data,
                bytes_of(tensor.shape(), tensor.dtype()), write);
}

void manual_seed(std::uint64_t seed) {
  this_thread() = {seed, 0};
}

RandomStream next_random_stream() {
  Generator& generator = this_thread();
  return RandomStream(generator.seed, "call/" + std::to_string(generator.calls++));
}

}  // namespace convoy
