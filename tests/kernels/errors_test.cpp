// What kernels refuse when they are called, before any work is queued.
#include <fmt/format.h>

#include "kernels/base/error.h"
#include "kernels/elementwise.h"
#include "tests/support/catch.h"
#include "tests/support/op_case.h"

namespace convoy::testing {
namespace {

struct Call {
  std::string kernel;
  std::function<void(const KernelTable&, Stream&, Buffer x)> call;
};

alignas(64) double some_memory[8] = {};
const Buffer kDouble{some_memory, DType::f64};
const Buffer kLabels{some_memory, DType::i64};
const Buffer kIndex{some_memory, DType::u8};
const BatchNormStatistics kStatistics{kDouble, kDouble, 4};
const Conv2dShape kConv{1, 1, 1, 1, 1, 1, 1};
const LinearShape kLinear{1, 1, 1};
const BatchNormShape kNorm{1, 1, 1};
const Pool2dShape kPool{1, 1, 1, 1, 1, 1, 1, 1};

std::vector<Call> layer_calls() {
  using K = const KernelTable&;
  return {
      {"conv2d_forward", [](K k, Stream& s, Buffer x) { k.conv2d_forward(s, kConv, x, x, {}, x); }},
      {"conv2d_input_gradient",
       [](K k, Stream& s, Buffer x) { k.conv2d_input_gradient(s, kConv, x, x, x); }},
      {"conv2d_weight_gradient",
       [](K k, Stream& s, Buffer x) { k.conv2d_weight_gradient(s, kConv, x, x, x, {}); }},
      {"linear_forward",
       [](K k, Stream& s, Buffer x) { k.linear_forward(s, kLinear, x, x, {}, x); }},
      {"linear_input_gradient",
       [](K k, Stream& s, Buffer x) { k.linear_input_gradient(s, kLinear, x, x, x); }},
      {"linear_weight_gradient",
       [](K k, Stream& s, Buffer x) { k.linear_weight_gradient(s, kLinear, x, x, x, {}); }},
      {"batch_norm_statistics",
       [](K k, Stream& s, Buffer x) { k.batch_norm_statistics(s, kNorm, x, kDouble, kDouble); }},
      {"batch_norm_apply",
       [](K k, Stream& s, Buffer x) {
         k.batch_norm_apply(s, kNorm, x, kStatistics, 1e-5, x, x, {}, false, x, {});
       }},
      {"batch_norm_backward_reduce",
       [](K k, Stream& s, Buffer x) {
         k.batch_norm_backward_reduce(s, kNorm, x, {}, {}, x, kStatistics, 1e-5, false, kDouble,
                                      kDouble);
       }},
      {"batch_norm_backward_apply",
       [](K k, Stream& s, Buffer x) {
         k.batch_norm_backward_apply(s, kNorm, x, {}, {}, x, kStatistics, 1e-5, false, x, {}, {}, x,
                                     {});
       }},
      {"max_pool2d_forward",
       [](K k, Stream& s, Buffer x) { k.max_pool2d_forward(s, kPool, x, x, kIndex); }},
      {"max_pool2d_backward",
       [](K k, Stream& s, Buffer x) { k.max_pool2d_backward(s, kPool, x, kIndex, x); }},
      {"avg_pool2d_forward",
       [](K k, Stream& s, Buffer x) { k.avg_pool2d_forward(s, kPool, x, x); }},
      {"avg_pool2d_backward",
       [](K k, Stream& s, Buffer x) { k.avg_pool2d_backward(s, kPool, x, x); }},
  };
}

std::vector<Call> other_calls() {
  using K = const KernelTable&;
  return {
      {"unary_forward", [](K k, Stream& s, Buffer x) { k.unary_forward(s, Unary::relu, 1, x, x); }},
      {"unary_backward",
       [](K k, Stream& s, Buffer x) { k.unary_backward(s, Unary::relu, 1, x, x, x, x); }},
      {"binary_forward",
       [](K k, Stream& s, Buffer x) { k.binary_forward(s, Binary::add, 1, x, x, x); }},
      {"binary_backward",
       [](K k, Stream& s, Buffer x) { k.binary_backward(s, Binary::add, 1, x, x, x, x, x); }},
      {"fill", [](K k, Stream& s, Buffer x) { k.fill(s, 1, 0, x); }},
      {"scale", [](K k, Stream& s, Buffer x) { k.scale(s, 1, 1, x); }},
      {"cast", [](K k, Stream& s, Buffer x) { k.cast(s, 1, x, kDouble); }},
      {"softmax_cross_entropy",
       [](K k, Stream& s, Buffer x) {
         k.softmax_cross_entropy(s, {1, 1}, x, kLabels, x, x);
       }},
      {"mse", [](K k, Stream& s, Buffer x) { k.mse(s, 1, 1, x, x, x, x); }},
      {"reduce_sum",
       [](K k, Stream& s, Buffer x) {
         k.reduce_sum(s, {1, 1, 1}, 1, x, x);
       }},
      {"broadcast",
       [](K k, Stream& s, Buffer x) {
         k.broadcast(s, {1, 1, 1}, 1, x, x);
       }},
      {"sum_of_squares", [](K k, Stream& s, Buffer x) { k.sum_of_squares(s, {x}, {1}, kDouble); }},
      {"sgd_update",
       [](K k, Stream& s, Buffer x) {
         k.sgd_update(s, {{1, x, x, x, {}}}, {});
       }},
      {"lars_update",
       [](K k, Stream& s, Buffer x) {
         k.lars_update(s, {{1, x, x, x, {}}}, {});
       }},
      {"adamw_update",
       [](K k, Stream& s, Buffer x) {
         k.adamw_update(s, {{1, x, x, x, x}}, {});
       }},
  };
}

// The error of `call`, also where it surfaces at the wait.
template <class Function>
Error error_of(Stream& stream, Function&& call) {
  try {
    call();
    stream.synchronize();
  } catch (const Error& error) {
    return error;
  }
  return Error(ErrorKind::internal, "no error");
}

void check_refused(const Device& device, const Call& call, DType dtype) {
  DeviceContext& on = context(device);
  Stream& stream = on.default_stream();
  const Error error = error_of(stream, [&] {
    call.call(on.kernels(), stream, Buffer{some_memory, dtype});
  });
  INFO(call.kernel << " on " << to_string(device) << " of " << name(dtype) << ": " << error.text());
  CHECK(error.kind() == ErrorKind::usage);
  CHECK(error.text().find(call.kernel) == 0);
  CHECK(error.text().find(name(dtype)) != std::string::npos);
}

template <class Function>
void check_reference_error(ErrorKind kind, const std::string& text, Function&& call) {
  DeviceContext& on = context("ref:0");
  const Error error =
      error_of(on.default_stream(), [&] { call(on.kernels(), on.default_stream()); });
  CHECK(name(error.kind()) == std::string(name(kind)));
  CHECK(error.text() == text);
}

}  // namespace

TEST_CASE("kernels refuse a dtype that they do not have, by name") {
  for (const Device& device : tested_devices()) {
    const bool has_bf16 = computes_in(DType::bf16, device);
    const DType refused = has_bf16 ? DType::i32 : DType::bf16;
    for (const Call& call : layer_calls()) check_refused(device, call, refused);
    for (const Call& call : other_calls()) {
      // i32 is cast, and on the CPU filled too.
      const bool takes_it = call.kernel == "cast" || (call.kernel == "fill" && !is_gpu(device));
      if (!has_bf16 || !takes_it) check_refused(device, call, refused);
    }
  }
}

TEST_CASE("reference kernels refuse operands of two dtypes") {
  check_reference_error(ErrorKind::usage,
                        "reduce_sum: operands are f32 and f64, expected one dtype",
                        [](const KernelTable& k, Stream& s) {
                          k.reduce_sum(s, {1, 1, 1}, 1, {some_memory, DType::f32}, kDouble);
                        });
}

TEST_CASE("reference kernels know the plain layout alone") {
  const Buffer blocked{some_memory, DType::f64, 3};
  check_reference_error(ErrorKind::internal, "scale: layout 3 is none of ref, expected plain",
                        [&](const KernelTable& k, Stream& s) { k.scale(s, 1, 1, blocked); });
  check_reference_error(ErrorKind::internal,
                        "layout_bytes: layout 3 is none of ref, expected plain",
                        [&](const KernelTable& k, Stream&) { k.layout_bytes(3, {1}, DType::f64); });
  check_reference_error(ErrorKind::internal,
                        "cast: layouts 3 and 0 are none of ref, expected plain",
                        [&](const KernelTable& k, Stream& s) { k.cast(s, 1, blocked, kDouble); });
}

TEST_CASE("reference kernels check helper operands") {
  check_reference_error(
      ErrorKind::internal,
      "batch_norm_statistics: mean has dtype f32 and layout 0, expected f64 and plain",
      [](const KernelTable& k, Stream& s) {
        k.batch_norm_statistics(s, kNorm, kDouble, {some_memory, DType::f32}, kDouble);
      });
  check_reference_error(
      ErrorKind::internal, "batch_norm_backward_apply: one of two sums is left out",
      [](const KernelTable& k, Stream& s) {
        k.batch_norm_backward_apply(s, kNorm, kDouble, {}, {}, kDouble, kStatistics, 1e-5, false,
                                    kDouble, kDouble, {}, kDouble, {});
      });
  check_reference_error(ErrorKind::internal, "fill: no operand is given",
                        [](const KernelTable& k, Stream& s) { k.fill(s, 1, 0, {}); });
  check_reference_error(ErrorKind::internal, "sum_of_squares: 1 buffers and 2 counts",
                        [](const KernelTable& k, Stream& s) {
                          k.sum_of_squares(s, {kDouble}, {1, 1}, kDouble);
                        });
  check_reference_error(
      ErrorKind::usage,
      "max_pool2d_forward: window 17 x 16 is too large, expected at most 256 places",
      [](const KernelTable& k, Stream& s) {
        k.max_pool2d_forward(s, {1, 1, 20, 20, 17, 16, 1, 1}, kDouble, kDouble, kIndex);
      });
}

TEST_CASE("reference optimizers need the memory that their settings use") {
  check_reference_error(ErrorKind::internal, "sgd_update: state1 is left out",
                        [](const KernelTable& k, Stream& s) {
                          k.sgd_update(s, {{1, kDouble, kDouble, {}, {}}}, {0.1, 0.9});
                        });
  check_reference_error(ErrorKind::internal, "adamw_update: state2 is left out",
                        [](const KernelTable& k, Stream& s) {
                          k.adamw_update(s, {{1, kDouble, kDouble, kDouble, {}}}, {});
                        });
}

}  // namespace convoy::testing
