#include "engine/parallel/pipeline/tensor_link.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "comm/channel.h"
#include "comm/clock.h"
#include "engine/tensor/storage.h"
#include "kernels/base/context.h"
#include "kernels/base/error.h"
#include "kernels/cpu/layout.h"

namespace convoy {
namespace {

/// Whether `layout` of `device` means the same in every process: those of weights on a cpu are
/// numbered as they come up. All devices of a run are of one kind.
bool is_shared(LayoutId layout, const Device& device) {
  if (layout == kPlain || is_gpu(device)) return true;
  return device.type == DeviceType::cpu && cpu::is_activation_layout(layout);
}

std::size_t stored_bytes(const Tensor& tensor) {
  return static_cast<std::size_t>(tensor.stored_count()) * size_of(tensor.dtype());
}

LinkTensor describe_for_link(const Tensor& tensor) {
  LinkTensor result;
  result.dtype = static_cast<std::int32_t>(tensor.dtype());
  result.layout = tensor.layout();
  result.rank = tensor.shape().rank();
  for (int i = 0; i < tensor.shape().rank(); ++i) result.extents[i] = tensor.size(i);
  return result;
}

void copy_out(const Tensor& tensor, std::byte* to) {
  Stream& stream = current_stream(tensor.device());
  const std::size_t bytes = stored_bytes(tensor);
  if (bytes == 0) return;
  if (is_gpu(tensor.device())) {
    return context(tensor.device()).copy_out(stream, to, tensor.buffer().data, bytes);
  }
  stream.synchronize();
  std::memcpy(to, tensor.buffer().data, bytes);
}

void copy_in(const std::byte* from, const Tensor& tensor) {
  Stream& stream = current_stream(tensor.device());
  const std::size_t bytes = stored_bytes(tensor);
  if (bytes == 0) return;
  if (is_gpu(tensor.device())) {
    return context(tensor.device()).copy_in(stream, tensor.buffer().data, from, bytes);
  }
  stream.synchronize();  // the memory may have been another tensor's, which queued work uses
  std::memcpy(tensor.buffer().data, from, bytes);
}

Payload copied_out(const std::vector<Tensor>& values, std::size_t bytes) {
  Payload payload(bytes);
  std::byte* to = payload.data();
  for (const Tensor& tensor : values) {
    copy_out(tensor, to);
    to += stored_bytes(tensor);
  }
  return payload;
}

void copy_in(const Payload& payload, const std::vector<Tensor>& tensors) {
  const std::byte* from = payload.data();
  for (const Tensor& tensor : tensors) {
    copy_in(from, tensor);
    from += stored_bytes(tensor);
  }
}

Parcel packed(const std::vector<Tensor>& values) {
  if (values.empty()) return {};
  std::vector<Parcel::Part> parts;
  for (const Tensor& tensor : values) {
    parts.push_back({tensor.buffer().data, stored_bytes(tensor)});
  }
  return Parcel(parts, current_stream(values.front().device()));
}

std::vector<Parcel::Place> places_of(const std::vector<Tensor>& tensors) {
  std::vector<Parcel::Place> places;
  for (const Tensor& tensor : tensors) {
    places.push_back({tensor.buffer().data, stored_bytes(tensor)});
  }
  return places;
}

/// A tensor of the layout that was sent: on `device` if that knows it, else on a cpu device.
Tensor make_tensor(const Shape& shape, DType dtype, LayoutId layout, const Device& device) {
  const Device home = is_shared(layout, device) ? device : Device(DeviceType::cpu, 0);
  return Tensor::empty(shape, {dtype, home}, layout);
}

/// The memory of a parcel's part, which becomes that of a tensor of `device`.
std::shared_ptr<Storage> storage_of(const Parcel& parcel, std::size_t part, const Device& device) {
  const std::size_t bytes = parcel.part_bytes(part);
  MemoryPool::Share share = context(device).memory().share(bytes);
  return std::make_shared<Storage>(device, parcel.take(part, current_stream(device)), bytes,
                                   std::move(share));
}

/// Compares a message with what should come.
class Comparison {
 public:
  Comparison(int from, const ExpectedTensors& expected)
      : what_(fmt::format("message from rank {} for batch {}, micro-batch {}", from, expected.batch,
                          expected.micro_batch)) {}

  template <class T>
  void check(const std::string& thing, const T& got, const T& expected) const {
    if (got == expected) return;
    CONVOY_FAIL(communication, "{}: {} is {}, expected {}", what_, thing, got, expected);
  }

 private:
  std::string what_;
};

std::string dtype_text(std::int32_t code) {
  const bool known = code >= 0 && code <= static_cast<std::int32_t>(DType::u8);
  return known ? name(static_cast<DType>(code)) : fmt::format("number {}", code);
}

std::string extents_text(const LinkTensor& tensor) {
  const auto rank = std::clamp<std::int64_t>(tensor.rank, 0, LinkTensor::kMaxRank);
  return shape_text(std::span(tensor.extents.data(), static_cast<std::size_t>(rank)));
}

void compare(const Comparison& compare, const LinkHeader& header, const ExpectedTensors& expected) {
  compare.check("batch", header.batch, expected.batch);
  compare.check("micro-batch", header.micro_batch, expected.micro_batch);
  compare.check("number of images", header.images, expected.images);
  compare.check("number of tensors", header.count,
                static_cast<std::int64_t>(expected.shapes.size()));
  for (std::size_t i = 0; i < expected.shapes.size(); ++i) {
    const LinkTensor& tensor = header.tensors[i];
    const std::string place = fmt::format(" of tensor {}", i);
    compare.check("type" + place, dtype_text(tensor.dtype), std::string(name(expected.dtype)));
    compare.check("shape" + place, extents_text(tensor), to_string(expected.shapes[i]));
    if (!cpu::is_activation_layout(tensor.layout)) {
      compare.check("layout" + place, fmt::format("number {}", tensor.layout),
                    std::string("one of activations"));
    }
  }
}

}  // namespace

int link_tag(int edge, LinkDirection direction) {
  const int tag = kLinkTestTag + 1 + 2 * edge + static_cast<int>(direction);
  CONVOY_CHECK(edge >= 0 && tag <= Fabric::kLastTag, "link: edge {}, expected 0 to {}", edge,
               (Fabric::kLastTag - kLinkTestTag) / 2 - 1);
  return tag;
}

TensorSender::TensorSender(HostCommunicator& group, int peer, int tag, const LinkOptions& options,
                           std::shared_ptr<ParcelLane> lane)
    : group_(group), lane_(std::move(lane)) {
  if (!lane_) link_.emplace(group, peer, tag, options);
}

TensorReceiver::TensorReceiver(HostCommunicator& group, int peer, int tag,
                               const LinkOptions& options, std::shared_ptr<ParcelLane> lane)
    : group_(group), lane_(std::move(lane)), from_(peer) {
  if (!lane_) link_.emplace(group, peer, tag, options);
}

double TensorSender::send(std::int64_t batch, std::int64_t micro_batch, std::int64_t images,
                          const std::vector<Tensor>& tensors) {
  CONVOY_CHECK(tensors.size() <= LinkHeader::kMaxTensors,
               "link: {} tensors cross a cut, expected at most {}", tensors.size(),
               LinkHeader::kMaxTensors);
  LinkHeader header{batch, micro_batch, images, static_cast<std::int64_t>(tensors.size()), {}};
  std::vector<Tensor> values;
  std::size_t bytes = 0;
  for (const Tensor& tensor : tensors) {
    const bool as_it_is = is_shared(tensor.layout(), tensor.device());
    values.push_back(as_it_is ? tensor.detach() : tensor.detach().with_layout(kPlain));
    header.tensors[values.size() - 1] = describe_for_link(values.back());
    bytes += stored_bytes(values.back());
  }
  if (lane_) return lane_->send(header, packed(values), group_);
  return link_->send(header, copied_out(values, bytes));
}

void TensorSender::flush() {
  if (link_) link_->flush();
}

ReceivedTensors TensorReceiver::receive(const ExpectedTensors& expected, const Device& device) {
  return lane_ ? receive_parcel(expected, device) : receive_message(expected, device);
}

ReceivedTensors TensorReceiver::receive_parcel(const ExpectedTensors& expected,
                                               const Device& device) {
  ParcelMessage message = lane_->receive(group_);
  ReceivedTensors received{{}, message.sent_at, steady_now()};
  if (is_gpu(device)) {
    received.tensors = make_tensors(message.header, message.parcel.bytes(), expected, device);
    message.parcel.open(places_of(received.tensors), current_stream(device));
    return received;
  }
  const Comparison comparison(from_, expected);
  compare(comparison, message.header, expected);
  for (std::size_t i = 0; i < expected.shapes.size(); ++i) {
    received.tensors.push_back(Tensor::over(storage_of(message.parcel, i, device),
                                            expected.shapes[i], expected.dtype,
                                            message.header.tensors[i].layout));
    comparison.check("number of bytes", message.parcel.part_bytes(i),
                     stored_bytes(received.tensors.back()));
  }
  return received;
}

ReceivedTensors TensorReceiver::receive_message(const ExpectedTensors& expected,
                                                const Device& device) {
  const LinkMessage message = link_->receive();
  std::vector<Tensor> tensors =
      make_tensors(message.header, message.payload.bytes(), expected, device);
  copy_in(message.payload, tensors);
  for (Tensor& tensor : tensors) tensor = tensor.to(device);
  return {std::move(tensors), message.sent_at, message.arrived_at};
}

std::vector<Tensor> TensorReceiver::make_tensors(const LinkHeader& header, std::size_t bytes,
                                                 const ExpectedTensors& expected,
                                                 const Device& device) const {
  const Comparison comparison(from_, expected);
  compare(comparison, header, expected);
  std::vector<Tensor> tensors;
  std::size_t all = 0;
  for (std::size_t i = 0; i < expected.shapes.size(); ++i) {
    const LayoutId layout = header.tensors[i].layout;
    tensors.push_back(make_tensor(expected.shapes[i], expected.dtype, layout, device));
    all += stored_bytes(tensors.back());
  }
  comparison.check("number of bytes", bytes, all);
  return tensors;
}

}  // namespace convoy
