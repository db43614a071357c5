// Convolutions as programs of oneDNN's primitives, for the files conv2d_*onednn.cpp.
#pragma once

#include <memory>

#include "kernels/base/buffer.h"
#include "kernels/cpu/onednn.h"
#include "kernels/cpu/winograd.h"
#include "kernels/shapes.h"

namespace convoy::cpu {

/// A pass of a convolution. Its output, which `pass` tells, is given as if it were an input.
struct ConvJob {
  const char* kernel;
  ConvPass pass;
  Conv2dShape shape;
  ConstBuffer x, w, bias, y;
};

/// The program of a pass in the layouts of the job's buffers, made once, on `threads` threads. Its
/// externals are x, w, bias where the job has one, and y; x and y of `type`, f32 or bf16, the
/// others f32.
std::shared_ptr<const Program> conv_program(const ConvJob& job, DType type, int threads);

/// Queues a pass whose x and y are bf16: piece by piece as floats, which stay in a core's cache.
void submit_pieces(Stream& stream, const ConvJob& job);

}  // namespace convoy::cpu
