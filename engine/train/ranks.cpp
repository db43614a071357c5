#include "engine/train/ranks.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "comm/host_values.h"
#include "kernels/base/error.h"

namespace convoy {
namespace {

// Texts of several parts, each with its length before it: they hold any bytes.
void add_part(std::string& text, std::string_view part) {
  text += std::to_string(part.size()) + ":";
  text += part;
}

std::vector<std::string> parts_of(std::string_view text) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    std::size_t size = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), size);
    const auto start = static_cast<std::size_t>(end - text.data()) + 1;
    CONVOY_DCHECK(code == std::errc() && start + size <= text.size(),
                  "a text of several parts is damaged");
    parts.emplace_back(text.substr(start, size));
    text.remove_prefix(start + size);
  }
  return parts;
}

std::int64_t number_of(std::string_view text) {
  std::int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

std::string describe_arrays(const std::vector<NamedArray>& arrays) {
  std::string text;
  for (const NamedArray& array : arrays) {
    add_part(text, array.name);
    add_part(text, std::to_string(static_cast<int>(array.dtype)));
    std::string extents;
    for (std::int64_t extent : array.shape) add_part(extents, std::to_string(extent));
    add_part(text, extents);
    add_part(text, std::to_string(array.bytes.size()));
  }
  return text;
}

std::vector<NamedArray> arrays_like(const std::string& text) {
  const std::vector<std::string> parts = parts_of(text);
  std::vector<NamedArray> arrays;
  for (std::size_t i = 0; i + 3 < parts.size(); i += 4) {
    NamedArray array;
    array.name = parts[i];
    array.dtype = static_cast<DType>(number_of(parts[i + 1]));
    for (const std::string& extent : parts_of(parts[i + 2])) {
      array.shape.push_back(number_of(extent));
    }
    array.bytes.resize(static_cast<std::size_t>(number_of(parts[i + 3])));
    arrays.push_back(std::move(array));
  }
  return arrays;
}

}  // namespace

// Of this process's workers, those at `position` of their replicas.
ReplicaRange Ranks::with_position(int position) const {
  const int each = layout_.workers_per_replica;
  const int first = (first_worker() - position + each - 1) / each;
  const int end = (first_worker() + local_workers() - position + each - 1) / each;
  return {first, end - first};
}

bool Ranks::any(bool mine) const {
  return alone() ? mine : any_of(group_->processes(), mine);
}

std::string Ranks::from_leader(const std::string& mine) const {
  return alone() ? mine : broadcast_text(group_->processes(), mine);
}

std::vector<std::string> Ranks::all_texts(const std::vector<std::string>& mine) const {
  if (alone()) return mine;
  std::string text;
  for (const std::string& part : mine) add_part(text, part);
  std::vector<std::string> texts;
  for (const std::string& each : gather_texts(group_->processes(), text)) {
    for (std::string& part : parts_of(each)) texts.push_back(std::move(part));
  }
  return texts;
}

std::vector<std::int64_t> Ranks::all_numbers(const std::vector<std::int64_t>& mine) const {
  std::vector<std::string> texts;
  for (std::int64_t number : mine) texts.push_back(std::to_string(number));
  std::vector<std::int64_t> numbers;
  for (const std::string& text : all_texts(texts)) numbers.push_back(number_of(text));
  return numbers;
}

std::vector<SkippedImage> Ranks::all_skipped(const std::vector<SkippedImage>& mine) const {
  if (alone()) return mine;
  std::vector<std::string> texts;
  for (const SkippedImage& image : mine) {
    texts.insert(texts.end(), {std::to_string(image.id), std::to_string(image.position), image.name,
                               image.reason});
  }
  texts = all_texts(texts);
  std::vector<SkippedImage> images;
  for (std::size_t i = 0; i + 3 < texts.size(); i += 4) {
    images.push_back({number_of(texts[i]), number_of(texts[i + 1]), texts[i + 2], texts[i + 3]});
  }
  std::sort(images.begin(), images.end(),
            [](const SkippedImage& a, const SkippedImage& b) { return a.position < b.position; });
  return images;
}

std::vector<NamedArray> Ranks::arrays_from_leader(std::vector<NamedArray> mine) const {
  if (alone()) return mine;
  const std::string described = from_leader(leads() ? describe_arrays(mine) : std::string());
  std::vector<NamedArray> arrays = leads() ? std::move(mine) : arrays_like(described);
  for (NamedArray& array : arrays) {
    if (array.bytes.empty()) continue;
    group_->processes().broadcast_now(array.bytes.data(), array.bytes.size(), 0);
  }
  return arrays;
}

void Ranks::barrier() const {
  if (!alone()) group_->processes().barrier();
}

void Ranks::enter(Activity activity) const {
  for (int i = 0; group_ && i < group_->local_workers(); ++i) group_->progress(i).enter(activity);
}

void Ranks::begin_step(std::int64_t step) const {
  for (int i = 0; group_ && i < group_->local_workers(); ++i) group_->progress(i).begin_step(step);
}

}  // namespace convoy
