#include "kernels/cuda/stream.h"

#include <cstring>

#include "kernels/base/error.h"
#include "kernels/cuda/runtime_extras.h"

namespace convoy::CONVOY_GPU {

struct GpuStream::HostCalls : std::enable_shared_from_this<HostCalls> {
  struct Call {
    std::shared_ptr<HostCalls> all;
    std::function<void()> work;
  };
  std::mutex mutex;
  std::set<Call*> waiting;
  std::exception_ptr failure;

  Call* add(std::function<void()> work) {
    auto* const call = new Call{shared_from_this(), std::move(work)};
    std::lock_guard lock(mutex);
    waiting.insert(call);
    return call;
  }
  void remove(Call* call) {
    {
      std::lock_guard lock(mutex);
      waiting.erase(call);
    }
    delete call;
  }
};

GpuStream::GpuStream(GpuDevice& device)
    : Stream(device.name), device_(device), host_calls_(std::make_shared<HostCalls>()) {
  device_.make_current();
  void* memory = nullptr;
  check(cudaMallocHost(&memory, sizeof(DeviceFailure)));
  failure_ = static_cast<DeviceFailure*>(memory);
  *failure_ = {};
  // Nothing here uses the default stream, and nothing should wait for it.
  check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
}

GpuStream::~GpuStream() {
  drain();
  scratch_.reset();
  device_.memory.retire(this);
  while (!spans_.empty()) drop_last_span();
  if (time_zero_) device_.timed_events->give_back(time_zero_);
  cudaStreamDestroy(stream_);
  cudaFreeHost(failure_);
  // After a fault of the device CUDA drops what was queued.
  while (!host_calls_->waiting.empty()) host_calls_->remove(*host_calls_->waiting.begin());
}

void GpuStream::drain() noexcept {
  cudaSetDevice(device_.name.index);
  cudaStreamSynchronize(stream_);
}

bool GpuStream::capturing() const {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  check(cudaStreamIsCapturing(stream_, &status));
  return status != cudaStreamCaptureStatusNone;
}

Event GpuStream::record() {
  device_.make_current();
  return Event(std::make_shared<GpuEvent>(device_.events, stream_, capturing()));
}

void GpuStream::wait(const Event& event) {
  const auto* const ours = dynamic_cast<const GpuEvent*>(event.state().get());
  if (event.done() && !(ours && ours->captured())) return;
  device_.make_current();
  if (!ours) return host_call([event] { event.wait(); });
  // A graph can wait for its own events only; others must have passed before it is made.
  if (!ours->captured() && capturing()) return event.wait();
  check(cudaStreamWaitEvent(stream_, ours->handle(), 0));
}

void GpuStream::synchronize() {
  device_.make_current();
  check(cudaStreamSynchronize(stream_));
  throw_failure();
}

void GpuStream::throw_failure() {
  const DeviceFailure found = *failure_;
  *failure_ = {};
  std::exception_ptr host_failure;
  {
    std::lock_guard lock(host_calls_->mutex);
    host_failure = std::exchange(host_calls_->failure, nullptr);
  }
  switch (static_cast<FailureCode>(found.code)) {
    case FailureCode::none:
      break;
    case FailureCode::label_out_of_range:
      CONVOY_FAIL(data, "softmax_cross_entropy: label {} of row {}, expected 0..{}", found.value,
                  found.where, found.limit - 1);
    case FailureCode::single_value_batch_norm:
      CONVOY_FAIL(usage, "batch_norm: 1 value per channel in training, over all replicas");
  }
  if (host_failure) std::rethrow_exception(host_failure);
}

void GpuStream::run_host_call(void* data) {
  auto* const call = static_cast<HostCalls::Call*>(data);
  const std::shared_ptr<HostCalls> all = call->all;
  try {
    call->work();
  } catch (...) {
    std::lock_guard lock(all->mutex);
    if (!all->failure) all->failure = std::current_exception();
  }
  all->remove(call);
}

void GpuStream::host_call(std::function<void()> work) {
  device_.make_current();
  CONVOY_DCHECK(!capturing(), "{}: a graph cannot hold a call of the host", to_string(device()));
  HostCalls::Call* const call = host_calls_->add(std::move(work));
  const cudaError_t result = cudaLaunchHostFunc(stream_, run_host_call, call);
  if (result == cudaSuccess) return;
  host_calls_->remove(call);
  check(result);
}

void* GpuStream::scratch(std::size_t bytes) {
  // Queued work may still use the old block: the pool hands it out again in stream order only.
  // With checks each user gets its own, so that what it leaves or exceeds is seen.
  if (!scratch_ || bytes > scratch_->bytes() || wants_whole_blocks()) {
    if (scratch_ && capturing()) outgrown_.push_back(scratch_);
    scratch_.reset();
    scratch_ = std::make_shared<MemoryPool::Block>(device_.memory.allocate(bytes, this));
  }
  return scratch_->data();
}

std::vector<std::shared_ptr<MemoryPool::Block>> GpuStream::take_captured_scratch() {
  std::vector<std::shared_ptr<MemoryPool::Block>> used = std::exchange(outgrown_, {});
  if (scratch_) used.push_back(scratch_);
  return used;
}

cudaEvent_t GpuStream::record_time() {
  cudaEvent_t event = device_.timed_events->take();
  const cudaError_t result = cudaEventRecord(event, stream_);
  if (result != cudaSuccess) device_.timed_events->give_back(event);
  check(result);
  return event;
}

void GpuStream::begin_span(const char* kernel) {
  if (!recorder_ || capturing()) return;
  device_.make_current();
  if (!spans_.empty() && !spans_.back().end) drop_last_span();  // its kernel was refused
  spans_.push_back({kernel, record_time(), nullptr});
}

void GpuStream::end_span() {
  if (!spans_.empty() && !spans_.back().end) spans_.back().end = record_time();
}

void GpuStream::drop_last_span() {
  device_.timed_events->give_back(spans_.back().begin);
  if (spans_.back().end) device_.timed_events->give_back(spans_.back().end);
  spans_.pop_back();
}

void GpuStream::tell_spans() {
  if (!spans_.empty() && !spans_.back().end) drop_last_span();
  auto host_time = [this](cudaEvent_t event) {
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, time_zero_, event));
    return host_zero_ + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                            std::chrono::duration<float, std::milli>(milliseconds));
  };
  for (const Span& span : spans_) {
    recorder_->ran({device(), span.kernel, host_time(span.begin), host_time(span.end)});
    device_.timed_events->give_back(span.begin);
    device_.timed_events->give_back(span.end);
  }
  spans_.clear();
}

void GpuStream::record_to(std::shared_ptr<StreamRecorder> recorder) {
  device_.make_current();
  check(cudaStreamSynchronize(stream_));
  if (recorder_) tell_spans();
  recorder_ = std::move(recorder);
  if (!recorder_ || time_zero_) return;
  time_zero_ = record_time();
  check(cudaEventSynchronize(time_zero_));
  host_zero_ = std::chrono::steady_clock::now();
}

GpuStream& gpu(Stream& stream) {
  auto* const result = dynamic_cast<GpuStream*>(&stream);
  CONVOY_DCHECK(result, "stream of {} is not one of this backend", to_string(stream.device()));
  return *result;
}

cudaStream_t handle(Stream& stream) {
  const GpuStream& found = gpu(stream);
  found.gpu().make_current();
  return found.handle();
}

DeviceFailure* failure_of(Stream& stream) {
  return gpu(stream).failure();
}

bool allows_tf32(const Stream& stream) {
  const auto* const found = dynamic_cast<const GpuStream*>(&stream);
  CONVOY_DCHECK(found, "stream of {} is not one of this backend", to_string(stream.device()));
  return found->gpu().tf32;
}

}  // namespace convoy::CONVOY_GPU
