// A CUDA stream behind Stream, and the word in which kernels report bad input.
#pragma once

#include <cstdint>
#include <memory>

#include "kernels/base/stream.h"
#include "kernels/cuda/platform.h"

namespace convoy::CONVOY_GPU {

/// What a kernel found wrong with its input. The first one of a stream counts; it surfaces at
/// the next synchronize() as an Error of `kind` (the number of an ErrorKind) with the text of
/// `code` and the values.
enum class FailureCode : std::int32_t { none, label_out_of_range, single_value_batch_norm };

struct DeviceFailure {
  std::int32_t code;  // FailureCode; written last
  std::int32_t taken;
  std::int64_t value, limit;
};

/// The CUDA stream of `stream`; `internal` if it is another backend's.
cudaStream_t handle(Stream& stream);

/// Where kernels of `stream` report, in memory that they may write. Lives as long as the stream.
DeviceFailure* failure_of(Stream& stream);

/// Products of f32 on this stream's device may round their inputs to TF32.
bool allows_tf32(const Stream& stream);

}  // namespace convoy::CONVOY_GPU
