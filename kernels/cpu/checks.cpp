#include "kernels/cpu/checks.h"

#include "kernels/base/error.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/layout.h"

namespace convoy::cpu {

void require_f32(const char* kernel, const Stream& stream,
                 std::initializer_list<ConstBuffer> operands) {
  for (const ConstBuffer& operand : operands) {
    CONVOY_CHECK(!operand || operand.dtype == DType::f32,
                 "{}: {} computes in f32, not {}; use ref:K", kernel, to_string(stream.device()),
                 name(operand.dtype));
  }
}

void require_values(const char* kernel, const Stream& stream,
                    std::initializer_list<ConstBuffer> operands) {
  if (!isa().half) return require_f32(kernel, stream, operands);
  for (const ConstBuffer& operand : operands) {
    CONVOY_CHECK(!operand || operand.dtype == DType::f32 || operand.dtype == DType::bf16,
                 "{}: {} computes in f32 and bf16, not {}; use ref:K", kernel,
                 to_string(stream.device()), name(operand.dtype));
  }
}

void require_type(const char* kernel, DType dtype, std::initializer_list<Operand> operands) {
  for (const Operand& operand : operands) {
    CONVOY_DCHECK(!operand.buffer || operand.buffer.dtype == dtype, "{}: {} is {}, expected {}",
                  kernel, operand.name, name(operand.buffer.dtype), name(dtype));
  }
}

void require_plain(const char* kernel, std::initializer_list<Operand> operands) {
  for (const Operand& operand : operands) {
    CONVOY_DCHECK(!operand.buffer || operand.buffer.layout == kPlain,
                  "{}: {} is in layout {} ({}), expected plain", kernel, operand.name,
                  operand.buffer.layout, name(operand.buffer.layout));
  }
}

void require_activation(const char* kernel, std::initializer_list<Operand> operands) {
  for (const Operand& operand : operands) {
    CONVOY_DCHECK(!operand.buffer || is_activation_layout(operand.buffer.layout),
                  "{}: {} is in layout {} ({}), expected one of activations", kernel, operand.name,
                  operand.buffer.layout, name(operand.buffer.layout));
  }
}

void require_statistics(const char* kernel, std::initializer_list<Operand> operands) {
  for (const Operand& operand : operands) {
    const DType dtype = operand.buffer.dtype;
    CONVOY_DCHECK(operand.buffer && (dtype == DType::f32 || dtype == DType::f64),
                  "{}: {} is {}, expected f32 or f64", kernel, operand.name,
                  operand.buffer ? name(dtype) : "left out");
  }
}

}  // namespace convoy::cpu
