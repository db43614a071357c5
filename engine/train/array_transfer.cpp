#include "engine/train/array_transfer.h"

#include <cstdint>
#include <string>

#include "engine/io/text.h"
#include "kernels/base/error.h"

namespace convoy {
namespace {

constexpr int kTag = 900;

void send_text(HostCommunicator& group, const std::string& text, int peer) {
  const std::uint64_t bytes = text.size();
  group.send_now(&bytes, sizeof bytes, peer, kTag);
  group.send_now(text.data(), text.size(), peer, kTag);
}

std::string receive_text(HostCommunicator& group, int peer) {
  std::uint64_t bytes = 0;
  group.receive_now(&bytes, sizeof bytes, peer, kTag);
  std::string text(bytes, '\0');
  group.receive_now(text.data(), text.size(), peer, kTag);
  return text;
}

// One line an array: "dtype rank extents... name".
std::string described(const std::vector<NamedArray>& arrays) {
  std::string text;
  for (const NamedArray& array : arrays) {
    text += fmt::format("{} {} ", static_cast<int>(array.dtype), array.shape.size());
    for (std::int64_t extent : array.shape) text += fmt::format("{} ", extent);
    text += array.name + "\n";
  }
  return text;
}

std::int64_t next_number(const std::string& text, std::size_t& at) {
  const std::size_t end = text.find(' ', at);
  const std::int64_t number = std::stoll(text.substr(at, end - at));
  at = end + 1;
  return number;
}

std::vector<NamedArray> empty_arrays(const std::string& text) {
  std::vector<NamedArray> arrays;
  for (std::size_t at = 0; at < text.size();) {
    NamedArray& array = arrays.emplace_back();
    array.dtype = static_cast<DType>(next_number(text, at));
    std::int64_t bytes = static_cast<std::int64_t>(size_of(array.dtype));
    for (std::int64_t left = next_number(text, at); left > 0; --left) {
      array.shape.push_back(next_number(text, at));
      bytes *= array.shape.back();
    }
    const std::size_t end = text.find('\n', at);
    array.name = text.substr(at, end - at);
    array.bytes.resize(static_cast<std::size_t>(bytes));
    at = end + 1;
  }
  return arrays;
}

}  // namespace

void send_arrays(HostCommunicator& group, const std::vector<NamedArray>& arrays, int peer) {
  send_text(group, described(arrays), peer);
  for (const NamedArray& array : arrays) {
    if (!array.bytes.empty()) group.send_now(array.bytes.data(), array.bytes.size(), peer, kTag);
  }
}

std::vector<NamedArray> receive_arrays(HostCommunicator& group, int peer) {
  std::vector<NamedArray> arrays = empty_arrays(receive_text(group, peer));
  for (NamedArray& array : arrays) {
    if (!array.bytes.empty()) group.receive_now(array.bytes.data(), array.bytes.size(), peer, kTag);
  }
  return arrays;
}

}  // namespace convoy
