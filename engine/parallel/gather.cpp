#include "engine/parallel/gather.h"

#include <algorithm>

#include "kernels/base/context.h"

namespace convoy {
namespace {

// The elements of all ranks one after the other. Tensors made here belong to `stream`.
Tensor gather(Communicator& communicator, Stream& stream, const Tensor& values) {
  Tensor all = Tensor::empty({values.numel() * communicator.size()}, values.options());
  communicator.all_gather(values.buffer(), all.buffer(), values.numel(), stream);
  stream.synchronize();
  return all;
}

}  // namespace

std::vector<std::vector<std::int64_t>> gather_integers(Communicator& communicator, Stream& stream,
                                                       const std::vector<std::int64_t>& values) {
  const StreamScope scope(stream);
  const auto count = std::ssize(values);
  const Tensor mine = Tensor::from(values, {count}, stream.device());
  const auto all = gather(communicator, stream, mine).to_vector<std::int64_t>();
  std::vector<std::vector<std::int64_t>> result;
  for (int rank = 0; rank < communicator.size(); ++rank) {
    const auto first = all.begin() + rank * count;
    result.emplace_back(first, first + count);
  }
  return result;
}

std::vector<std::string> gather_texts(Communicator& communicator, Stream& stream,
                                      const std::string& text) {
  const auto lengths = gather_integers(communicator, stream, {std::ssize(text)});
  const std::int64_t longest = std::max_element(lengths.begin(), lengths.end())->front();
  std::string padded = text;
  padded.resize(static_cast<std::size_t>(longest));
  const StreamScope scope(stream);
  const Tensor mine = Tensor::from_host(padded.data(), {longest}, {DType::u8, stream.device()});
  const std::vector<std::byte> all = gather(communicator, stream, mine).to_bytes();
  std::vector<std::string> result;
  for (std::size_t rank = 0; rank < lengths.size(); ++rank) {
    const auto* first = reinterpret_cast<const char*>(all.data()) + rank * padded.size();
    result.emplace_back(first, static_cast<std::size_t>(lengths[rank].front()));
  }
  return result;
}

}  // namespace convoy
