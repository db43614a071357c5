#include "comm/host_values.h"

#include <algorithm>
#include <numeric>

namespace convoy {
namespace {

template <class T>
std::vector<T> gather(HostCommunicator& group, T value) {
  std::vector<T> all(group.size());
  group.all_gather_now(&value, all.data(), sizeof(T));
  return all;
}

}  // namespace

std::int64_t sum_over(HostCommunicator& group, std::int64_t value) {
  const auto all = gather(group, value);
  return std::accumulate(all.begin(), all.end(), std::int64_t{0});
}

double sum_over(HostCommunicator& group, double value) {
  const auto all = gather(group, value);
  return std::accumulate(all.begin() + 1, all.end(), all.front());
}

std::int64_t max_over(HostCommunicator& group, std::int64_t value) {
  const auto all = gather(group, value);
  return *std::max_element(all.begin(), all.end());
}

bool any_of(HostCommunicator& group, bool value) {
  return max_over(group, std::int64_t{value}) != 0;
}

std::string broadcast_text(HostCommunicator& group, const std::string& text, int root) {
  std::uint64_t bytes = text.size();
  group.broadcast_now(&bytes, sizeof bytes, root);
  std::string result = group.rank() == root ? text : std::string(bytes, '\0');
  group.broadcast_now(result.data(), bytes, root);
  return result;
}

std::vector<std::string> gather_texts(HostCommunicator& group, const std::string& text) {
  const auto sizes = gather(group, std::uint64_t{text.size()});
  const std::uint64_t longest = *std::max_element(sizes.begin(), sizes.end());
  std::string padded = text;
  padded.resize(longest);
  std::string all(longest * sizes.size(), '\0');
  group.all_gather_now(padded.data(), all.data(), longest);
  std::vector<std::string> texts;
  for (std::size_t r = 0; r < sizes.size(); ++r) texts.push_back(all.substr(r * longest, sizes[r]));
  return texts;
}

}  // namespace convoy
