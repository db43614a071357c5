#include "engine/parallel/reduce_lane.h"

#include "kernels/base/error.h"

namespace convoy {
namespace {

std::vector<std::int64_t> bytes_of_all(const NamedTensors& parameters) {
  std::vector<std::int64_t> bytes;
  for (const auto& [name, parameter] : parameters) {
    bytes.push_back(static_cast<std::int64_t>(bytes_of(parameter.shape(), parameter.dtype())));
  }
  return bytes;
}

std::size_t whole_lines(std::size_t bytes) {
  return (bytes + 63) / 64 * 64;
}

}  // namespace

ReduceLane::ReduceLane(NamedTensors parameters, std::unique_ptr<Communicator> communicator,
                       const BucketLimits& limits)
    : parameters_(std::move(parameters)),
      options_(parameters_.front().second.options()),
      communicator_(std::move(communicator)),
      plan_(plan_buckets(bytes_of_all(parameters_), limits)),
      places_(parameters_.size()),
      times_(std::make_shared<Times>()),
      stream_(context(options_.device).make_stream()) {
  set_layouts(std::vector<LayoutId>(parameters_.size(), kPlain));
}

void ReduceLane::set_layouts(const std::vector<LayoutId>& layouts) {
  buckets_.clear();
  for (const std::vector<std::size_t>& members : plan_) {
    std::vector<Bucket::Slot> slots;
    for (std::size_t member : members) {
      places_[member] = {buckets_.size(), slots.size()};
      slots.push_back({member, parameters_[member].second.shape(), layouts[member]});
    }
    const bool last = buckets_.size() + 1 == plan_.size();
    buckets_.emplace_back(options_, std::move(slots), last ? std::ssize(parameters_) : 0);
  }
  if (!is_gpu(options_.device)) give_memory();
}

// Where other ranks of the host read gradients as they lie.
void ReduceLane::give_memory() {
  std::size_t bytes = 0;
  for (const Bucket& bucket : buckets_) bytes += whole_lines(bucket.bytes());
  const std::shared_ptr<std::byte> memory = communicator_->make_memory(bytes);
  if (!memory) return;
  std::byte* place = memory.get();
  for (Bucket& bucket : buckets_) {
    bucket.set_memory({memory, place});
    place += whole_lines(bucket.bytes());
  }
}

void ReduceLane::begin() {
  collected_.assign(parameters_.size(), false);
  present_.assign(parameters_.size(), 0);
  next_ = 0;
  *times_ = {};
}

void ReduceLane::collect(std::size_t member, double factor) {
  const Tensor& gradient = parameters_[member].second.grad();
  take(member, bucket_of(member).collect(slot_of(member), gradient, factor), true);
}

void ReduceLane::collect_zeros(std::size_t member, bool present) {
  take(member, bucket_of(member).collect_zeros(slot_of(member)), present);
}

void ReduceLane::take(std::size_t member, Tensor gradient, bool present) {
  collected_[member] = true;
  present_[member] = present ? 1 : 0;
  // The memory of the gradient itself is free again, so there are never two of each.
  parameters_[member].second.grad() = std::move(gradient);
  send_full_buckets();
}

void ReduceLane::send_full_buckets() {
  while (next_ < buckets_.size() && buckets_[next_].is_full()) {
    Bucket& bucket = buckets_[next_++];
    // All are full now, so it is known which gradients there are.
    if (next_ == buckets_.size()) bucket.set_tail(present_);
    send(bucket);
  }
}

void ReduceLane::send(Bucket& bucket) {
  const Buffer values = bucket.whole();
  stream_->wait(current_stream(options_.device).record());
  stream_->host_call([times = times_] { times->begun = Clock::now(); });
  communicator_->all_reduce(values, values, bucket.count(), Reduction::sum, *stream_);
  stream_->host_call([times = times_] {
    times->reduced = Clock::now();
    times->all_reduce += times->reduced - times->begun;
  });
  mark_sent();
}

std::vector<double> ReduceLane::wait() {
  CONVOY_DCHECK(next_ == buckets_.size(), "reducer: {} of {} buckets sent", next_, buckets_.size());
  Stream& compute = current_stream(options_.device);
  compute.host_call([times = times_] { times->computed = Clock::now(); });
  const Event computed = compute.record();
  stream_->synchronize();
  computed.wait();
  return buckets_.back().tail(*stream_);
}

void ReduceLane::end(const std::vector<bool>& unused) {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (unused[i]) parameters_[i].second.grad() = Tensor();
  }
  for (Bucket& bucket : buckets_) bucket.release();
}

}  // namespace convoy
