// One description of a kernel call (operands, shapes, how to launch it) that runs on any device, in
// any dtype and layout. check() holds every backend against the reference in double, and looks for
// writes outside of outputs, changed inputs, padding that is not zero, and runs that differ.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "kernels/base/context.h"
#include "kernels/kernel_list.h"
#include "tests/support/formula.h"
#include "tests/support/tolerance.h"

namespace convoy::testing {

/// Where an operand's layout comes from when a backend's preferred layouts are tried. Beside bf16
/// weights may be f32 in theirs: so are plain ones then.
enum class Slot { plain, plain_weight, conv_x, conv_weight, conv_y };

enum class Use { input, output, in_place, scratch };

struct Operand {
  std::string name;
  Shape shape;
  Use use = Use::input;
  Slot slot = Slot::plain;
  std::optional<DType> dtype;       // absent: that of the run
  std::vector<double> values;       // of input and in_place
  std::optional<OpClass> op_class;  // of results: absent is that of the case
  bool full = false;                // f32 in a run in bf16: parameters and their gradients

  /// Its element type in a run in `run_dtype`.
  DType dtype_in(DType run_dtype) const {
    return dtype.value_or(full && run_dtype == DType::bf16 ? DType::f32 : run_dtype);
  }
};

/// What a case's launch function sees: one device, and its operands by name.
struct Launch {
  const KernelTable& kernels;
  Stream& stream;
  std::map<std::string, Buffer> buffers;
  std::map<std::string, std::int64_t> stored;  // elements, padding included

  /// The operand, or one left out where the case has none of that name.
  Buffer operator[](const std::string& name) const {
    auto found = buffers.find(name);
    return found == buffers.end() ? Buffer{} : found->second;
  }
};

struct OpCase {
  std::string name;
  OpClass op_class = OpClass::elementwise;
  std::function<void(const Launch&)> launch = {};
  double terms = 1;                          // of the longest sum
  Conv2dShape layouts{1, 1, 1, 1, 1, 1, 1};  // whose preferred layouts are tried
  bool zero_padding = true;                  // the results' padding is zero
  bool takes_bf16 = true;                    // where the device computes in it
  std::vector<Operand> operands = {};

  /// Adds an input; without values, those of the formula for "case/operand".
  OpCase& input(const std::string& operand, const Shape& shape, Slot slot = Slot::plain,
                std::vector<double> values = {});
  /// Adds an input of a dtype that does not follow the run's.
  OpCase& input_of(DType dtype, const std::string& operand, const Shape& shape,
                   std::vector<double> values = {});
  OpCase& output(const std::string& operand, const Shape& shape, Slot slot = Slot::plain,
                 std::optional<OpClass> result_class = {});
  OpCase& output_of(DType dtype, const std::string& operand, const Shape& shape,
                    std::optional<OpClass> result_class = {});
  OpCase& in_place(const std::string& operand, const Shape& shape, Slot slot = Slot::plain,
                   std::vector<double> values = {});
  /// An output that is not compared, because only its device can read it.
  OpCase& scratch_of(DType dtype, const std::string& operand, const Shape& shape, Slot slot);
  /// Marks operands that stay f32 in a run in bf16; names that the case has not are passed over.
  OpCase& full(std::initializer_list<const char*> names);
  OpCase& run(std::function<void(const Launch&)> function);
};

/// The case with integers of -4 to 4 as inputs: sums stay far below 2^24, so that float holds them
/// in any order of summation.
OpCase with_integers(OpCase op_case);

/// A device, a dtype, and whether operands lie as the device likes best.
struct Variant {
  Device device;
  DType dtype = DType::f64;
  bool preferred = false;
};

/// "cpu:0 f32 preferred".
std::string to_string(const Variant& variant);

/// Every backend that is held against the reference: a new one is one more name here.
std::vector<Device> tested_devices();

/// Whether the device's kernels take values of `dtype`; of the reference: f32.
bool computes_in(DType dtype, const Device& device);

/// The f32 variants of all tested devices that make a difference to the case.
std::vector<Variant> float_variants(const OpCase& op_case);

/// The same in `dtype`, of the devices that compute in it, save for the reference, against which
/// they are held: f64 is GPUs' alone, bf16 also that of CPUs with instructions for it.
std::vector<Variant> variants_in(DType dtype, const OpCase& op_case);

/// Values of all results (outputs and in-place operands), by name.
using Results = std::map<std::string, std::vector<double>>;

/// Results of a case, and what was wrong with how they came about.
struct Outcome {
  Results results;
  std::vector<std::string> faults;
};

/// Runs the case twice (on an emulated GPU under three orders of threads and blocks) and looks for
/// faults that need no expected values.
Outcome outcome(const OpCase& op_case, const Variant& variant);

/// The results of outcome(), whose faults are checked to be none.
Results run(const OpCase& op_case, const Variant& variant);

/// Compares `actual` with `expected` for results of the case in `variant`'s dtype. Exact results in
/// bf16 are the expected values, rounded.
void compare(const OpCase& op_case, const Variant& variant, const Results& actual,
             const Results& expected);

/// Every backend in every dtype that it has, plain and preferred, against the reference in f64.
void check(const OpCase& op_case);

/// A result that was computed elsewhere: which one, and its digest under the name `probe`.
struct ExpectedDigest {
  std::string result;
  std::string probe;
  Digest digest;
};

/// The reference and GPUs in f64 (to `tolerance`) and every backend in f32 (to `float_tolerance`)
/// against digests that were made elsewhere.
void check_digests(const OpCase& op_case, const std::vector<ExpectedDigest>& expected,
                   double tolerance = 1e-10, double float_tolerance = 1e-5);

}  // namespace convoy::testing
