// A CUDA stream behind Stream, and the word in which kernels report bad input.
#pragma once

#include <cstdint>
#include <memory>

#include "kernels/base/stream.h"
#include "kernels/cuda/platform.h"

namespace convoy::CONVOY_GPU {

/// What a kernel found wrong with its input. The first one of a stream counts; it surfaces at
/// the next synchronize() as an Error whose kind and text belong to the code.
enum class FailureCode : std::int32_t {
  none,
  label_out_of_range,       ///< value: the label, limit: the classes, where: its row
  single_value_batch_norm,  ///< a batch of one value per channel
};

struct DeviceFailure {
  std::int32_t code;  // FailureCode; written last
  std::int32_t taken;
  std::int64_t value, limit, where;
};

/// The CUDA stream of `stream`, whose device becomes the calling thread's: what is launched next is
/// for it. `internal` if the stream is another backend's.
cudaStream_t handle(Stream& stream);

/// Where kernels of `stream` report, in memory that they may write. Lives as long as the stream.
DeviceFailure* failure_of(Stream& stream);

/// Products of f32 on this stream's device may round their inputs to TF32.
bool allows_tf32(const Stream& stream);

}  // namespace convoy::CONVOY_GPU
