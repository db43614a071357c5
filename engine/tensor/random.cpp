#include "engine/tensor/random.h"

#include <cmath>
#include <numbers>
#include <string>

#include "kernels/base/philox.h"

namespace convoy {
namespace {

std::uint64_t fnv1a(std::string_view text) {
  std::uint64_t hash = 0xCBF29CE484222325ULL;
  for (unsigned char c : text) hash = (hash ^ c) * 0x100000001B3ULL;
  return hash;
}

double to_unit(std::uint32_t high, std::uint32_t low) {
  return unit_of(std::uint64_t{high} << 32 | low);
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

std::vector<double> RandomStream::uniform(std::int64_t count) const {
  const PhiloxKey key = {low_half(seed_), high_half(seed_)};
  std::vector<double> numbers(static_cast<std::size_t>(count) + 1);
  for (std::int64_t i = 0; i < count; i += 2) {
    const auto block = static_cast<std::uint64_t>(i) / 2;
    const PhiloxBlock bits = philox(
        {low_half(block), high_half(block), low_half(name_hash_), high_half(name_hash_)}, key);
    numbers[static_cast<std::size_t>(i)] = to_unit(bits[0], bits[1]);
    numbers[static_cast<std::size_t>(i) + 1] = to_unit(bits[2], bits[3]);
  }
  numbers.resize(static_cast<std::size_t>(count));
  return numbers;
}

std::vector<double> RandomStream::normal(std::int64_t count) const {
  std::vector<double> numbers = uniform(count + count % 2);
  for (std::size_t i = 0; i < numbers.size(); i += 2) {
    const double radius = std::sqrt(-2 * std::log1p(-numbers[i]));
    const double angle = 2 * std::numbers::pi * numbers[i + 1];
    numbers[i] = radius * std::cos(angle);
    numbers[i + 1] = radius * std::sin(angle);
  }
  numbers.resize(static_cast<std::size_t>(count));
  return numbers;
}

void manual_seed(std::uint64_t seed) {
  this_thread() = {seed, 0};
}

RandomStream next_random_stream() {
  Generator& generator = this_thread();
  return RandomStream(generator.seed, "call/" + std::to_string(generator.calls++));
}

}  // namespace convoy
