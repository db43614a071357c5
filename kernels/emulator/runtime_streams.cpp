// Streams and events of the runtime's interface.
#include "kernels/emulator/handle_table.h"
#include "kernels/emulator/streams.h"

namespace convoy::emulator {
namespace {

std::shared_ptr<EmulatedStream> find(cudaStream_t stream) {
  return handles<EmulatedStream>().find(stream);
}

std::shared_ptr<EmulatedEvent> find(cudaEvent_t event) {
  return handles<EmulatedEvent>().find(event);
}

// The point that an event stands for now; null if it was never recorded.
std::shared_ptr<EventPoint> point_of(EmulatedEvent& event) {
  std::lock_guard lock(event.mutex);
  return event.point;
}

cudaError_t wait_for(EmulatedStream& stream) {
  if (const cudaError_t refused = refuse_in_capture(stream); refused != cudaSuccess) return refused;
  stream.drain();
  return stream.device().fault();
}

cudaError_t create_stream(cudaStream_t* stream, unsigned flags) {
  if (const cudaError_t refused = refusal(); refused != cudaSuccess) return refused;
  if (flags > cudaStreamNonBlocking) return cudaErrorInvalidValue;
  EmulatedDevice& device = emulated_device(current_device());
  *stream = handles<EmulatedStream>().add(EmulatedStream::start(device, flags));
  return cudaSuccess;
}

cudaError_t create_event(cudaEvent_t* event, unsigned flags) {
  if (const cudaError_t refused = refusal(); refused != cudaSuccess) return refused;
  if ((flags & ~(cudaEventBlockingSync | cudaEventDisableTiming)) != 0) {
    return cudaErrorInvalidValue;
  }
  const bool timed = (flags & cudaEventDisableTiming) == 0;
  *event = handles<EmulatedEvent>().add(std::make_shared<EmulatedEvent>(current_device(), timed));
  return cudaSuccess;
}

cudaError_t record(cudaEvent_t event, cudaStream_t stream) {
  if (const cudaError_t refused = refusal(); refused != cudaSuccess) return refused;
  const auto on = find(stream);
  const auto in = find(event);
  if (!on || !in) return cudaErrorInvalidResourceHandle;
  if (on->device().index() != in->device) {
    return fail(cudaErrorInvalidResourceHandle, "an event and a stream of different devices");
  }
  const CaptureResult captured = capture_record(*on, *in);
  if (captured.taken || captured.error != cudaSuccess) return captured.error;
  auto point = std::make_shared<EventPoint>();
  {
    std::lock_guard lock(in->mutex);
    in->point = point;
  }
  on->push({[point] { point->reach(); }, true});
  return cudaSuccess;
}

cudaError_t wait_in_stream(cudaStream_t stream, cudaEvent_t event) {
  if (const cudaError_t refused = refusal(); refused != cudaSuccess) return refused;
  const auto on = find(stream);
  const auto in = find(event);
  if (!on || !in) return cudaErrorInvalidResourceHandle;
  const CaptureResult captured = capture_wait(*on, *in);
  if (captured.taken || captured.error != cudaSuccess) return captured.error;
  const auto point = point_of(*in);
  if (point && !point->reached()) on->push({[point] { point->wait(); }, true, true});
  return cudaSuccess;
}

cudaError_t ask_event(cudaEvent_t event, bool wait) {
  if (const cudaError_t refused = refusal(); refused != cudaSuccess) return refused;
  const auto in = find(event);
  if (!in) return cudaErrorInvalidResourceHandle;
  if (const cudaError_t refused = refuse_captured(*in); refused != cudaSuccess) return refused;
  if (const cudaError_t refused = refuse_while_capturing(); refused != cudaSuccess) return refused;
  const auto point = point_of(*in);
  if (point && wait) point->wait();
  if (point && !point->reached()) return cudaErrorNotReady;
  return emulated_device(in->device).fault();
}

cudaError_t elapsed(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  const auto from = find(begin);
  const auto to = find(end);
  if (!from || !to || !from->timed || !to->timed) return cudaErrorInvalidResourceHandle;
  const auto first = point_of(*from);
  const auto last = point_of(*to);
  if (!first || !last) return cudaErrorInvalidResourceHandle;
  if (!first->reached() || !last->reached()) return cudaErrorNotReady;
  *milliseconds = std::chrono::duration<float, std::milli>(last->time() - first->time()).count();
  return cudaSuccess;
}

}  // namespace

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  return note(create_stream(stream, cudaStreamDefault));
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return note(create_stream(stream, flags));
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  const auto on = find(stream);
  if (!on) return note(cudaErrorInvalidResourceHandle);
  if (const cudaError_t refused = refuse_in_capture(*on); refused != cudaSuccess) {
    return note(refused);
  }
  handles<EmulatedStream>().remove(stream);
  on->retire();
  return note(on->device().fault());
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (const cudaError_t refused = refusal(); refused != cudaSuccess) return note(refused);
  const auto on = find(stream);
  return note(on ? wait_for(*on) : cudaErrorInvalidResourceHandle);
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  if (const cudaError_t refused = refusal(); refused != cudaSuccess) return note(refused);
  const auto on = find(stream);
  if (!on) return note(cudaErrorInvalidResourceHandle);
  const cudaError_t refused = refuse_in_capture(*on);
  if (refused != cudaSuccess) return note(refused);
  if (!on->idle()) return cudaErrorNotReady;
  return note(on->device().fault());
}

cudaError_t cudaDeviceSynchronize() {
  if (const cudaError_t refused = refusal(); refused != cudaSuccess) return note(refused);
  if (const cudaError_t refused = refuse_while_capturing(); refused != cudaSuccess) {
    return note(refused);
  }
  EmulatedDevice& device = emulated_device(current_device());
  for (const auto& stream : streams_of(device)) stream->drain();
  return note(device.fault());
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
  return note(flags == 0 ? wait_in_stream(stream, event) : cudaErrorInvalidValue);
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  if (!function) return note(cudaErrorInvalidValue);
  return note(queue_work(stream, {[function, data] {
                           HostFunctionScope scope;
                           function(data);
                         }}));
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return note(create_event(event, cudaEventDefault));
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  return note(create_event(event, flags));
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  const bool found = handles<EmulatedEvent>().remove(event) != nullptr;
  return note(found ? cudaSuccess : cudaErrorInvalidResourceHandle);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return note(record(event, stream));
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  return note(ask_event(event, false));
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return note(ask_event(event, true));
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  return note(elapsed(milliseconds, begin, end));
}

}  // namespace convoy::emulator
