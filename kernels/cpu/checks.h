// What every kernel of this backend asks of its buffers.
#pragma once

#include <initializer_list>

#include "kernels/base/buffer.h"
#include "kernels/base/stream.h"

namespace convoy::cpu {

/// A buffer and what the message calls it.
struct Operand {
  const char* name;
  ConstBuffer buffer;
};

/// `usage` unless all operands are f32; operands left out are passed over.
void require_f32(const char* kernel, const Stream& stream,
                 std::initializer_list<ConstBuffer> operands);

/// `usage` unless each operand is f32 or, where isa() has instructions for it, bf16; operands left
/// out are passed over.
void require_values(const char* kernel, const Stream& stream,
                    std::initializer_list<ConstBuffer> operands);

/// `internal` unless all operands given have `dtype`.
void require_type(const char* kernel, DType dtype, std::initializer_list<Operand> operands);

/// `internal` unless all operands given are plain.
void require_plain(const char* kernel, std::initializer_list<Operand> operands);

/// `internal` unless all operands given are plain or in channel blocks.
void require_activation(const char* kernel, std::initializer_list<Operand> operands);

/// `internal` unless all operands are f32 or f64, as statistics are.
void require_statistics(const char* kernel, std::initializer_list<Operand> operands);

}  // namespace convoy::cpu
