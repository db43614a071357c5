// Every function of kernels/elementwise_list.h as an op.
#include "kernels/elementwise.h"

#include "engine/autograd/node.h"
#include "engine/ops/ops.h"
#include "engine/ops/support.h"
#include "kernels/base/error.h"

namespace convoy {
namespace {

// A private layout's padding must stay zero: a function that moves zero runs row-major.
bool keeps_zero(Unary op) {
  bool keeps = false;
  with_formula(op, [&](auto formula) { keeps = formula.value(0.0) == 0.0; });
  return keeps;
}

bool keeps_zero(Binary op) {
  bool keeps = false;
  with_formula(op, [&](auto formula) { keeps = formula.value(0.0, 0.0) == 0.0; });
  return keeps;
}

template <class Op>
Tensor fitting(Op op, const Tensor& x) {
  return x.layout() == kPlain || keeps_zero(op) ? x : x.with_layout(kPlain);
}

Tensor unary(const char* name, Unary op, const Tensor& x) {
  check_operands(name, {x});
  const Tensor input = fitting(op, x.detach());
  Tensor y = Tensor::empty_like(input);
  kernels_of(x).unary_forward(stream_of(x), op, input.stored_count(), input.buffer(), y.buffer());
  auto half = [op, in = SavedTensor(name, input), out = SavedTensor(name, y)](
                  const Tensor& dy, const std::vector<bool>&) -> Gradients {
    Tensor dx = Tensor::empty_like(in.get());
    kernels_of(dy).unary_backward(stream_of(dy), op, dx.stored_count(), in.get().buffer(),
                                  out.get().buffer(), dy.buffer(), dx.buffer());
    return {dx};
  };
  return record(name, y, {x}, half);
}

Tensor binary(const char* name, Binary op, const Tensor& a, const Tensor& b) {
  check_operands(name, {a, b});
  CONVOY_CHECK(a.shape() == b.shape(), "{}: operands are {} and {}", name, to_string(a.shape()),
               to_string(b.shape()));
  const Tensor left = fitting(op, a.detach());
  const Tensor right = b.detach().with_layout(left.layout());
  Tensor y = Tensor::empty_like(left);
  kernels_of(a).binary_forward(stream_of(a), op, left.stored_count(), left.buffer(), right.buffer(),
                               y.buffer());
  auto half = [op, left = SavedTensor(name, left), right = SavedTensor(name, right)](
                  const Tensor& dy, const std::vector<bool>& wanted) -> Gradients {
    Tensor da = wanted[0] ? Tensor::empty_like(dy) : Tensor();
    Tensor db = wanted[1] ? Tensor::empty_like(dy) : Tensor();
    kernels_of(dy).binary_backward(stream_of(dy), op, dy.stored_count(), left.get().buffer(),
                                   right.get().buffer(), dy.buffer(), buffer_or_none(da),
                                   buffer_or_none(db));
    return {da, db};
  };
  return record(name, y, {a, b}, half);
}

}  // namespace

#define CONVOY_DEFINE_UNARY(name, value, derivative) \
  Tensor name(const Tensor& x) {                     \
    return unary(#name, Unary::name, x);             \
  }
CONVOY_UNARY_LIST(CONVOY_DEFINE_UNARY)
#undef CONVOY_DEFINE_UNARY

#define CONVOY_DEFINE_BINARY(name, value, by_a, by_b) \
  Tensor name(const Tensor& a, const Tensor& b) {     \
    return binary(#name, Binary::name, a, b);         \
  }
CONVOY_BINARY_LIST(CONVOY_DEFINE_BINARY)
#undef CONVOY_DEFINE_BINARY

}  // namespace convoy
